#include "findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "greynic/core/units.h"

namespace greynic::model {

using namespace pipeline;

namespace {

constexpr double kNormal95 = 1.959964;
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
    case kQpPacketNs:
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
    case kBurstGapUs:
      return "latency of 64 B, 1 KiB, 4 KiB and 8 KiB";
    default:
      return {};
  }
}

}  // namespace

std::vector<std::string> describe_anomalies(const Points& points, const PipelineFit& fit) {
  struct Group {
    double least_bytes = 1e300;
    double most_bytes = 0.0;
    double worst = 0.0;  ///< log of measured over law
    double worst_bytes = 0.0;
    int count = 0;
    const Setting* setting = nullptr;
  };
  std::map<std::tuple<int, int, bool>, Group> groups;
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    if (!fit.anomalous[i]) continue;
    const Point& point = points.points[i];
    const double residual = point.log_value - evaluate(point.output, point.setting, fit.values);
    Group& group = groups[{point.run, point.output, residual < 0.0}];
    group.setting = &point.setting;
    group.least_bytes = std::min(group.least_bytes, point.setting.bytes);
    group.most_bytes = std::max(group.most_bytes, point.setting.bytes);
    if (std::abs(residual) > std::abs(group.worst)) {
      group.worst = residual;
      group.worst_bytes = point.setting.bytes;
    }
    ++group.count;
  }
  std::vector<std::string> findings;
  for (const auto& [key, group] : groups) {
    const bool below = std::get<2>(key);
    findings.push_back(fmt::format(
        "anomaly: {} of {} with {} is up to {:.1f} times {} than the law between {} and {} "
        "({} points, worst at {}); no law explains it and it is left out of the fit",
        kOutputNames[std::get<1>(key)], kOperationNames[static_cast<int>(group.setting->operation)],
        masks_text(*group.setting), std::exp(std::abs(group.worst)), below ? "lower" : "higher",
        size_text(group.least_bytes), size_text(group.most_bytes), group.count,
        size_text(group.worst_bytes)));
  }
  return findings;
}

std::vector<std::string> describe_identifiability(const PipelineFit& fit) {
  std::vector<std::string> findings;
  findings.push_back(fmt::format("identifiability: condition number {:.0f} over {} parameters",
                                 fit.condition_number, fit.active.size()));
  for (const int j : fit.active) {
    const double share = deviation_of(fit, j) / parameters()[j].prior.deviation;
    if (share < kHardlyInformed || settled_by(j).empty()) continue;
    findings.push_back(fmt::format(
        "{} rests on prior knowledge, the data hardly inform it; to settle it measure {}",
        parameters()[j].name, settled_by(j)));
  }
  for (std::size_t a = 0; a < fit.active.size(); ++a) {
    for (std::size_t b = a + 1; b < fit.active.size(); ++b) {
      const int i = fit.active[a];
      const int j = fit.active[b];
      const double correlation =
          fit.covariance[i * kParameterCount + j] / (deviation_of(fit, i) * deviation_of(fit, j));
      if (std::abs(correlation) < kCorrelated) continue;
      const std::string_view remedy = settled_by(j).empty() ? settled_by(i) : settled_by(j);
      findings.push_back(fmt::format("{} and {} trade off (correlation {:.2f}){}{}",
                                     parameters()[i].name, parameters()[j].name, correlation,
                                     remedy.empty() ? "" : "; to tell them apart measure ",
                                     remedy));
    }
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
                        shown(parameter, fit.values[j] - kNormal95 * deviation),
                        shown(parameter, fit.values[j] + kNormal95 * deviation),
                        parameters()[j].unit, 100.0 * informed);
  }
  return text;
}

}  // namespace greynic::model
