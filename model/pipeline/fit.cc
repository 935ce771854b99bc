#include "pipeline/fit.h"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "fitting/robust.h"
#include "greynic/model/least_squares.h"
#include "pipeline/doorbells.h"
#include "pipeline/posterior.h"
#include "pipeline/uncertainty.h"

namespace greynic::model::pipeline {
namespace {

constexpr double kFirstScatter = 0.03;  // before the points have spoken
constexpr double kLeastScatter = 2e-4;  // keeps weights finite for noise-free points
// A residual is an anomaly when it is far beyond the scatter and large in itself.
constexpr double kAnomalousDeviations = 6.0;
constexpr double kAnomalousShare = 0.15;

/// Parameters that these points can say something about.
std::vector<int> informed(const std::vector<Point>& points) {
  std::array<bool, kParameterCount> on{};
  bool any_bandwidth = false;
  bool any_latency = false;
  std::array<bool, kOperationCount> used{};
  double least_contexts[4] = {1e300, 1e300, 1e300, 1e300};
  double most_contexts[4] = {0, 0, 0, 0};
  for (const Point& point : points) {
    const Setting& s = point.setting;
    const int o = static_cast<int>(s.operation);
    used[o] = true;
    if (point.output == kLogBandwidth) {
      any_bandwidth = true;
      if (s.operation == Operation::kSend) on[kSendGapNs] = true;
      for (const PostingClass& c : posting_classes(s.threads, s.qps, s.dedicated_doorbells)) {
        if (c.load > 0.0) on[kDoorbellNs] = on[kDoorbellWaitNs] = true;
      }
    } else {
      any_latency = true;
      on[kBaseUs + o] = true;
      if (s.bytes > s.inline_bytes) on[kFetchUs] = true;
      if (s.inline_bytes <= 0.0 && s.operation != Operation::kRead) on[kInlineBytes] = true;
    }
    const double request_encap = s.masks[static_cast<int>(Hop::kClientEncap)];
    const double request_decap = s.masks[static_cast<int>(Hop::kServerDecap)];
    const double answer_encap = s.masks[static_cast<int>(Hop::kServerEncap)];
    const double answer_decap = s.masks[static_cast<int>(Hop::kClientDecap)];
    if (request_encap + answer_encap > 0.0) {
      on[kEncapNs] = on[kEncapOfOperation + o] = on[kQpMaskNs] = true;
    }
    if (request_decap + answer_decap > 0.0) on[kDecapNs] = on[kDecapOfOperation + o] = true;
    if (s.flow_setup_rate > 0.0) on[kFlowSetupNs] = true;
    const double counts[4] = {s.qps, s.mr_pages, s.qps * s.depth, s.vxlan_contexts};
    for (int k = 0; k < 4; ++k) {
      least_contexts[k] = std::min(least_contexts[k], counts[k]);
      most_contexts[k] = std::max(most_contexts[k], counts[k]);
    }
  }
  struct Cache {
    Parameter entries;
    std::array<Parameter, 2> of_bandwidth;
    Parameter of_latency;
  };
  constexpr Cache kCaches[4] = {{kQpContexts, {kQpMissNs, kQpStall}, kQpWaitUs},
                                {kPageEntries, {kPageMissNs, kPageMissNs}, kPageWaitUs},
                                {kWqeEntries, {kWqeMissNs, kWqeMissNs}, kWqeEntries},
                                {kVxlanContexts, {kVxlanMissNs, kVxlanMissNs}, kVxlanMissNs}};
  for (int k = 0; k < 4; ++k) {
    const Cache& cache = kCaches[k];
    // One count only, but one that may well be too many: the cache has a say all the same.
    const Prior& prior = parameters()[cache.entries].prior;
    const bool many = std::log(most_contexts[k]) > prior.mean - prior.deviation;
    if (most_contexts[k] <= least_contexts[k] && !many) continue;
    on[cache.entries] = true;
    if (any_bandwidth) on[cache.of_bandwidth[0]] = on[cache.of_bandwidth[1]] = true;
    if (any_latency) on[cache.of_latency] = true;
  }
  if (any_bandwidth) {
    for (const int j : {kLineGbps, kPcieGbps, kPostNs, kMessageNs, kQueueBaseUs}) on[j] = true;
  }
  if (any_bandwidth || any_latency) {
    for (const int j :
         {kQpPacketNs, kEncapPackets, kDecapPackets, kQpWindow, kStageBaseUs, kSharpness}) {
      on[j] = true;
    }
  }
  if (any_latency) on[kByteNs] = on[kBurstGapUs] = true;
  std::vector<int> active;
  for (int j = 0; j < kParameterCount; ++j) {
    if (on[j]) active.push_back(j);
  }
  return active;
}

std::vector<double> log_residuals(const std::vector<Point>& points, const Values& values) {
  std::vector<double> result(points.size());
  const LawAt law(values);
  for (std::size_t i = 0; i < points.size(); ++i) {
    result[i] = points[i].log_value - law.at(points[i].output, points[i].setting);
  }
  return result;
}

/// What the data of this output show at once: line from the fastest, posting from the most
/// messages.
Values first_guess(const std::vector<Point>& points, const Priors& priors) {
  double line = 0.0;
  double post_ns = 1e300;
  std::array<double, kOperationCount> base;
  base.fill(1e300);
  for (const Point& point : points) {
    const Setting& s = point.setting;
    const double value = std::exp(point.log_value);
    if (point.output == kLogBandwidth) {
      line = std::max(line, value * s.wire_bytes() / s.bytes);
      post_ns = std::min(post_ns, s.bytes * 8.0 / value * std::min(s.threads, s.qps));
    } else {
      double& least = base[static_cast<int>(s.operation)];
      least = std::min(least, value);
    }
  }
  Values values{};
  for (int j = 0; j < kParameterCount; ++j) {
    values[j] = priors[j].mean + (priors[j].relative_to ? values[*priors[j].relative_to] : 0.0);
    if (j == kLineGbps && line > 0.0) values[j] = std::log(line);
    if (j == kLoopPackets) values[j] = std::log(kOpenLoopPackets);
    if (j == kPostNs && post_ns < 1e300) values[j] = std::log(std::max(1.0, post_ns));
    if (j >= kBaseUs && j < kBaseUs + static_cast<int>(kOperationCount) &&
        base[j - kBaseUs] < 1e300) {
      values[j] = std::log(base[j - kBaseUs]);
    }
  }
  return values;
}

std::vector<std::vector<double>> make_starts(const Posterior& posterior, const Values& guess,
                                             const PipelineOptions& options) {
  std::vector<std::vector<double>> starts = {posterior.at(guess)};
  // The fastest goodput may be the host bus's doing instead of the line's.
  Values bus = guess;
  bus[kPcieGbps] = guess[kLineGbps];
  bus[kLineGbps] = guess[kLineGbps] + posterior.priors[kPcieGbps].mean;
  starts.push_back(posterior.at(bus));
  // From a capacity beyond every count there is no slope towards the one that is right.
  if (std::binary_search(posterior.active.begin(), posterior.active.end(), int{kQpContexts})) {
    for (const double shift : {-1.2, 1.2}) {
      Values values = guess;
      values[kQpContexts] += shift;
      starts.push_back(posterior.at(values));
    }
  }
  std::mt19937_64 random(options.seed);
  std::normal_distribution<double> normal;
  for (int s = 1; s < options.starts; ++s) {
    Values values = s % 2 == 1 ? guess : bus;
    for (const int j : posterior.active) {
      values[j] += 0.5 * std::min(1.0, posterior.priors[j].deviation) * normal(random);
    }
    starts.push_back(posterior.at(values));
  }
  return starts;
}

/// Scatter beyond the points' own errors, such that weighted residuals have the size they should:
/// by moments, inflated for the parameters that were fitted.
double scatter_of(const std::vector<Point>& points, const std::vector<double>& residuals,
                  const std::vector<bool>& anomalous, Output output, double freedom_share) {
  const auto excess = [&](double scatter) {
    double sum = 0.0;
    double count = 0.0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].output != output || anomalous[i]) continue;
      const double deviation = std::hypot(scatter, points[i].relative_error);
      sum += residuals[i] * residuals[i] / (deviation * deviation);
      count += 1.0;
    }
    return sum - count * freedom_share;
  };
  double low = kLeastScatter;
  double high = 3.0;
  if (excess(low) <= 0.0) return low;
  for (int step = 0; step < 60; ++step) {
    const double middle = std::sqrt(low * high);
    (excess(middle) > 0.0 ? low : high) = middle;
  }
  return high;
}

/// Variance that the points of one run have in common, by moments.
double run_spread(const std::vector<Point>& points, const std::vector<double>& residuals,
                  const std::vector<bool>& anomalous, Output output) {
  std::map<int, std::vector<double>> runs;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].output == output && !anomalous[i]) runs[points[i].run].push_back(residuals[i]);
  }
  // Products of different points of a run: their mean is the common variance.
  double products = 0.0;
  double pairs = 0.0;
  for (const auto& [run, r] : runs) {
    const double sum = std::accumulate(r.begin(), r.end(), 0.0);
    const double squares = std::inner_product(r.begin(), r.end(), r.begin(), 0.0);
    products += sum * sum - squares;
    pairs += static_cast<double>(r.size()) * static_cast<double>(r.size() - 1);
  }
  return pairs > 0.0 && products > 0.0 ? std::sqrt(products / pairs) : 0.0;
}

/// Are the points met within their own errors already? Then they ask for nothing more.
bool explained(const Posterior& posterior, const Values& values) {
  const auto residuals = log_residuals(posterior.points, values);
  double sum = 0.0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double error = std::max(kLeastScatter, posterior.points[i].relative_error);
    sum += residuals[i] * residuals[i] / (error * error);
  }
  return sum < 1.5 * static_cast<double>(residuals.size());
}

/// Adds the closed loop to a fitted open law when the points are explained clearly better with it:
/// by more than two parameters would by chance, at odds of about a thousand to one.
void close_loop_if_asked_for(Posterior& posterior, const LeastSquaresOptions& options,
                             PipelineFit& fit) {
  constexpr double kClearlyBetter = 14.0;
  if (explained(posterior, fit.values)) return;
  Posterior closed = posterior;
  closed.active.push_back(kLoopPackets);
  closed.active.push_back(kLoopBaseUs);
  std::sort(closed.active.begin(), closed.active.end());
  Values start = fit.values;
  std::vector<std::vector<double>> starts;
  for (const double share : {0.0, 0.7}) {
    start[kLoopBaseUs] = closed.priors[kLoopBaseUs].mean;
    start[kLoopPackets] = fit.values[kLineGbps] + closed.priors[kLoopPackets].mean;
    // The loop takes over from the stages that stood in for it.
    start[kEncapPackets] = fit.values[kEncapPackets] + share;
    start[kDecapPackets] = fit.values[kDecapPackets] + share;
    start[kQpWindow] = fit.values[kQpWindow] + share;
    starts.push_back(closed.at(start));
  }
  const auto solved = best_of_starts(closed.problem(), starts, 2, options);
  if (!solved || fit.sum_of_squares - solved->sum_of_squares < kClearlyBetter) return;
  posterior.active = fit.active = closed.active;
  fit.values = closed.with(solved->parameters);
  fit.sum_of_squares = solved->sum_of_squares;
}

/// The law with a loop where it needs one; `from` says whether the second burst waits for the walk of the first.
Result<void> descend(Posterior& posterior, const Values& from, const PipelineOptions& options,
                     PipelineFit& fit) {
  posterior.values = from;
  const auto starts = options.start_from != nullptr
                          ? std::vector<std::vector<double>>{posterior.at(from)}
                          : make_starts(posterior, from, options);
  LeastSquaresOptions coarse;
  coarse.tolerance = 1e-5;
  const auto solved = best_of_starts(posterior.problem(), starts, options.descents, coarse);
  if (!solved) return solved.error().while_doing("fitting the pipeline law");
  fit.values = posterior.with(solved->parameters);
  fit.sum_of_squares = solved->sum_of_squares;
  if (!posterior.active.empty()) close_loop_if_asked_for(posterior, coarse, fit);
  return {};
}

/// Do messages of several bursts meet masks?
bool tell_of_bursts(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(), [](const Point& point) {
    const auto& masks = point.setting.masks;
    return point.output == kLogLatency && point.setting.packets() > kBurstPackets &&
           std::any_of(masks.begin(), masks.end(), [](double count) { return count > 0; });
  });
}

/// Marks the points that no law explains.
void set_aside_anomalies(const std::vector<Point>& points, PipelineFit& fit) {
  const auto residuals = log_residuals(points, fit.values);
  for (const auto output : {kLogBandwidth, kLogLatency}) {
    std::vector<double> sizes;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].output == output) sizes.push_back(std::abs(residuals[i]));
    }
    const double scatter = std::max(kLeastScatter, 1.4826 * median(sizes));
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].output != output) continue;
      const double deviation = std::hypot(scatter, points[i].relative_error);
      fit.anomalous[i] = std::abs(residuals[i]) > kAnomalousDeviations * deviation &&
                         std::abs(residuals[i]) > kAnomalousShare;
    }
  }
}

/// The priors carry part of each parameter, so a fit uses up fewer degrees of freedom than it has
/// parameters.
double degrees_spent(const PipelineFit& fit, const Priors& priors) {
  if (fit.covariance.empty()) return static_cast<double>(fit.active.size()) * 0.7;
  double spent = 0.0;
  for (const int j : fit.active) {
    const double share =
        fit.covariance[j * kParameterCount + j] / (priors[j].deviation * priors[j].deviation);
    spent += std::max(0.0, 1.0 - share);
  }
  return spent;
}

}  // namespace

const Priors& table_priors() {
  static const Priors priors = [] {
    Priors result;
    for (int j = 0; j < kParameterCount; ++j) result[j] = parameters()[j].prior;
    return result;
  }();
  return priors;
}

std::vector<double> prior_precision(const Priors& priors) {
  std::vector<double> precision(kParameterCount * kParameterCount, 0.0);
  const auto at = [&](int i, int j) -> double& { return precision[i * kParameterCount + j]; };
  for (int j = 0; j < kParameterCount; ++j) {
    const double p = 1.0 / (priors[j].deviation * priors[j].deviation);
    at(j, j) += p;
    if (priors[j].relative_to) {
      const int k = *priors[j].relative_to;
      at(k, k) += p;
      at(j, k) -= p;
      at(k, j) -= p;
    }
  }
  return precision;
}

Result<PipelineFit> fit_pipeline(const std::vector<Point>& points, const PipelineOptions& options) {
  const Priors& priors = options.priors != nullptr ? *options.priors : table_priors();
  if (points.size() < 3) {
    return fail(
        ErrorCode::kTooFewPoints,
        fmt::format("{} measured values cannot fit a law; measure at least 3", points.size()));
  }
  PipelineFit fit;
  fit.anomalous.assign(points.size(), false);
  fit.active = informed(points);
  for (Noise& noise : fit.noise) noise.scatter = kFirstScatter;

  const Values guess =
      options.start_from != nullptr ? *options.start_from : first_guess(points, priors);
  Posterior posterior{points, weights_for(points, fit.noise, fit.anomalous),
                      priors, fit.active,
                      guess,  Loss::kCauchy};
  Posterior unhindered = posterior;
  PipelineFit other = fit;
  if (auto done = descend(posterior, guess, options, fit); !done) return pass_on(done);
  if (options.start_from == nullptr && tell_of_bursts(points) &&
      !explained(posterior, fit.values)) {
    Values flowing = guess;
    flowing[kBurstWalk] = std::log(parameters()[kBurstWalk].lower);
    if (auto done = descend(unhindered, flowing, options, other); !done) return pass_on(done);
    if (other.sum_of_squares < fit.sum_of_squares) {
      fit = other;
      posterior.active = unhindered.active;
      posterior.values = unhindered.values;
    }
  }

  set_aside_anomalies(points, fit);

  // Least squares on the rest; noise and fit settle together in a few rounds.
  posterior.loss = Loss::kHuber;
  const auto used =
      static_cast<double>(std::count(fit.anomalous.begin(), fit.anomalous.end(), false));
  for (int round = 0; round < 3; ++round) {
    const double spent = degrees_spent(fit, priors);
    const double freedom = std::max(0.2, (used - spent) / used);
    const auto residuals = log_residuals(points, fit.values);
    for (const auto output : {kLogBandwidth, kLogLatency}) {
      fit.noise[output].scatter = scatter_of(points, residuals, fit.anomalous, output, freedom);
      fit.noise[output].run = run_spread(points, residuals, fit.anomalous, output);
    }
    posterior.weight = weights_for(points, fit.noise, fit.anomalous);
    LeastSquaresOptions fine;
    fine.tolerance = round < 2 ? 1e-5 : 1e-8;
    const auto solved = minimize(posterior.problem(), posterior.at(fit.values), fine);
    if (!solved) return solved.error().while_doing("fitting the pipeline law");
    fit.values = posterior.with(solved->parameters);
    fit.sum_of_squares = solved->sum_of_squares;
    fit.covariance = covariance_of(points, fit, priors);
  }
  // Parameters without data follow the ones they are tied to.
  for (int j = 0; j < kParameterCount; ++j) {
    const bool is_active = std::binary_search(fit.active.begin(), fit.active.end(), j);
    if (!is_active && j != kLoopPackets && j != kBurstWalk) {
      fit.values[j] =
          priors[j].mean + (priors[j].relative_to ? fit.values[*priors[j].relative_to] : 0.0);
    }
  }
  if (auto known = determine(posterior.problem(), posterior.at(fit.values)); known) {
    fit.condition_number = known->condition_number;
  } else {
    return known.error().while_doing("fitting the pipeline law");
  }
  set_covariance_intervals(fit);
  return fit;
}

}  // namespace greynic::model::pipeline
