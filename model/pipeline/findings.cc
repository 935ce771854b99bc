#include "pipeline/findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "greynic/core/units.h"

namespace greynic::model {

using namespace pipeline;

namespace {

constexpr double kCorrelated = 0.95;
constexpr double kHardlyInformed = 0.7;  // share of the prior deviation that is left

std::string size_text(double bytes) { return to_string(Bytes{static_cast<std::uint64_t>(bytes)}); }

std::string masks_text(const Setting& s) {
  return fmt::format(
      "client encap {:g}, client decap {:g}, server encap {:g}, server decap {:g}",
      s.masks[static_cast<int>(Hop::kClientEncap)], s.masks[static_cast<int>(Hop::kClientDecap)],
      s.masks[static_cast<int>(Hop::kServerEncap)], s.masks[static_cast<int>(Hop::kServerDecap)]);
}

double deviation_of(const PipelineFit& fit, int j) {
  return std::sqrt(std::max(0.0, fit.covariance[j * kParameterCount + j]));
}

/// What tells a parameter apart best; empty where nothing simple does.
std::string_view settled_by(int j) {
  switch (j) {
    case kLineGbps:
    case kPcieGbps:
      return "large messages over many QPs without masks, at two MTUs";
    case kPostNs:
    case kMessageNs:
      return "64-byte messages from one thread and from many";
    case kDoorbellNs:
    case kDoorbellWaitNs:
      return "64-byte messages over 64 QPs from 4, 8 and 16 threads";
    case kSendGapNs:
      return "1 KiB messages with SEND and with WRITE from many threads";
    case kQueueBaseUs:
      return "64-byte messages over one QP at two depths of the send queue";
    case kQpContexts:
    case kQpMissNs:
    case kQpStall:
      return "64-byte and 4 KiB messages at 256 to 16384 QPs";
    case kPageEntries:
    case kPageMissNs:
      return "64-byte messages at 1 to 16384 memory regions";
    case kWqeEntries:
    case kWqeMissNs:
      return "READs of 64 bytes over 64 QPs at two depths of the send queue";
    case kVxlanContexts:
    case kVxlanMissNs:
      return "64-byte messages at 1 to 16384 VXLAN contexts";
    case kQpPacketNs:
    case kQpMaskNs:
    case kQpWindow:
      return "8 MiB messages over one QP, with and without masks";
    case kEncapPackets:
    case kEncapNs:
      return "8 MiB messages over 16 QPs with encap masks only, at two numbers of masks";
    case kDecapPackets:
    case kDecapNs:
    case kStageBaseUs:
      return "8 MiB messages over 16 QPs with decap masks only, at two numbers of masks";
    case kByteNs:
    case kFetchUs:
    case kInlineBytes:
    case kBurstGapUs:
    case kBurstWalk:
      return "latency of 64 B, 1 KiB, 4 KiB and 8 KiB";
    default:
      return {};
  }
}

}  // namespace

namespace {

struct AnomalyGroup {
  double least_bytes = 1e300;
  double most_bytes = 0.0;
  double worst = 0.0;  ///< log of measured over law
  double worst_bytes = 0.0;
  int count = 0;
  int settings = 0;
  const Setting* setting = nullptr;

  void add(const Setting& at, double residual) {
    setting = setting == nullptr || std::abs(residual) > std::abs(worst) ? &at : setting;
    least_bytes = std::min(least_bytes, at.bytes);
    most_bytes = std::max(most_bytes, at.bytes);
    if (std::abs(residual) > std::abs(worst)) {
      worst = residual;
      worst_bytes = at.bytes;
    }
    ++count;
  }
};

/// Operation, output, below the law.
using AnomalyKind = std::tuple<int, int, bool>;

std::string describe(const AnomalyKind& kind, const AnomalyGroup& group) {
  const bool below = std::get<2>(kind);
  const std::string where = group.settings == 1
                                ? fmt::format("with {}", masks_text(*group.setting))
                                : fmt::format("at {} settings (worst: {} QPs, {})", group.settings,
                                              group.setting->qps, masks_text(*group.setting));
  return fmt::format(
      "anomaly: {} of {} {} is up to {:.1f} times {} than the law between {} and {} "
      "({} points, worst at {}); no law explains it and it is left out of the fit",
      kOutputNames[static_cast<std::size_t>(std::get<1>(kind))],
      kOperationNames[static_cast<std::size_t>(std::get<0>(kind))], where,
      std::exp(std::abs(group.worst)), below ? "lower" : "higher", size_text(group.least_bytes),
      size_text(group.most_bytes), group.count, size_text(group.worst_bytes));
}

}  // namespace

std::vector<std::string> describe_anomalies(const Points& points, const PipelineFit& fit) {
  // One sentence for each setting while they are few, else one for each operation and measure.
  constexpr std::size_t kMostSentences = 4;
  std::map<std::pair<AnomalyKind, int>, AnomalyGroup> by_run;
  std::map<AnomalyKind, AnomalyGroup> by_kind;
  const LawAt law(fit.values);
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    if (!fit.anomalous[i]) continue;
    const Point& point = points.points[i];
    const double residual = point.log_value - law.at(point.output, point.setting);
    const AnomalyKind kind{static_cast<int>(point.setting.operation), point.output, residual < 0.0};
    AnomalyGroup& group = by_run[{kind, point.run}];
    group.settings = 1;
    if (group.count == 0) ++by_kind[kind].settings;
    group.add(point.setting, residual);
    by_kind[kind].add(point.setting, residual);
  }
  std::vector<std::string> findings;
  if (by_run.size() <= kMostSentences) {
    for (const auto& [key, group] : by_run) findings.push_back(describe(key.first, group));
  } else {
    for (const auto& [kind, group] : by_kind) findings.push_back(describe(kind, group));
  }
  return findings;
}

std::vector<std::string> describe_identifiability(const PipelineFit& fit) {
  std::vector<std::string> findings;
  findings.push_back(fmt::format("identifiability: condition number {:.0f} over {} parameters",
                                 fit.condition_number, fit.active.size()));
  // What one set of measurements would settle together is said together.
  std::map<std::string_view, std::string> unsettled;
  for (const int j : fit.active) {
    const double share = deviation_of(fit, j) / parameters()[j].prior.deviation;
    if (share < kHardlyInformed || settled_by(j).empty()) continue;
    std::string& names = unsettled[settled_by(j)];
    names += fmt::format("{}{}", names.empty() ? "" : ", ", parameters()[j].name);
  }
  for (const auto& [remedy, names] : unsettled) {
    findings.push_back(
        fmt::format("the data hardly inform {}; to settle that measure {}", names, remedy));
  }
  std::vector<std::tuple<double, int, int>> pairs;
  for (std::size_t a = 0; a < fit.active.size(); ++a) {
    for (std::size_t b = a + 1; b < fit.active.size(); ++b) {
      const int i = fit.active[a];
      const int j = fit.active[b];
      const double correlation =
          fit.covariance[i * kParameterCount + j] / (deviation_of(fit, i) * deviation_of(fit, j));
      if (std::abs(correlation) >= kCorrelated) pairs.emplace_back(correlation, i, j);
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
    return std::abs(std::get<0>(a)) > std::abs(std::get<0>(b));
  });
  constexpr std::size_t kMostPairs = 3;
  for (std::size_t k = 0; k < std::min(kMostPairs, pairs.size()); ++k) {
    const auto [correlation, i, j] = pairs[k];
    const std::string_view remedy = settled_by(j).empty() ? settled_by(i) : settled_by(j);
    findings.push_back(fmt::format("{} and {} trade off (correlation {:.2f}){}{}",
                                   parameters()[i].name, parameters()[j].name, correlation,
                                   remedy.empty() ? "" : "; to tell them apart measure ", remedy));
  }
  if (pairs.size() > kMostPairs) {
    findings.push_back(fmt::format("{} more pairs of parameters trade off above {:.2f}",
                                   pairs.size() - kMostPairs, kCorrelated));
  }
  return findings;
}

std::string parameter_table(const PipelineFit& fit) {
  std::string text = fmt::format("{:<20} {:>12} {:>12} {:>12}  {:<10} {:>9}\n", "parameter",
                                 "value", "low 95 %", "high 95 %", "unit", "from data");
  for (const int j : fit.active) {
    const auto parameter = static_cast<Parameter>(j);
    const double deviation = deviation_of(fit, j);
    const double prior = parameters()[j].prior.deviation;
    const double informed = std::max(0.0, 1.0 - deviation * deviation / (prior * prior));
    text += fmt::format("{:<20} {:>12.5g} {:>12.5g} {:>12.5g}  {:<10} {:>7.0f} %\n",
                        parameters()[j].name, shown(parameter, fit.values[j]),
                        shown(parameter, fit.interval[static_cast<std::size_t>(j)].low),
                        shown(parameter, fit.interval[static_cast<std::size_t>(j)].high),
                        parameters()[j].unit, 100.0 * informed);
  }
  return text;
}

}  // namespace greynic::model
