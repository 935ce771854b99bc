#include "greynic/campaign/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "greynic/campaign/mask_target.h"
#include "greynic/core/units.h"
#include "greynic/target/interrupt.h"

namespace greynic::campaign {
namespace {

using Clock = std::chrono::steady_clock;

// A twin gives thousands of observations a second, more than a disk can sync one by one. Measuring
// one again costs nothing there, so several share a transaction. On a real device each is kept at
// once.
constexpr std::size_t kBatch = 256;
constexpr std::chrono::milliseconds kBatchTime{50};

/// A measurement in which nothing completed is repeated for four times as long, up to this many
/// times what was asked and, however much that was, not beyond this time.
constexpr int kLonger = 4;
constexpr int kLongest = 64;
constexpr std::chrono::minutes kLongestTime{2};

/// How long to measure after `duration` was too short; empty when that is enough.
std::optional<std::chrono::nanoseconds> longer_than(std::chrono::nanoseconds duration,
                                                    std::chrono::nanoseconds asked) {
  const auto longer = duration * kLonger;
  if (longer > asked * kLongest || longer > kLongestTime) return std::nullopt;
  return longer;
}

/// The requests that the store has no observation of.
std::vector<target::MeasureRequest> missing(std::span<const Configuration> plan,
                                            const std::set<results::ObservationKey>& there,
                                            const RunOptions& options) {
  std::vector<target::MeasureRequest> requests;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (const Configuration& configuration : plan) {
      if (there.contains({configuration.name(), repeat})) continue;
      requests.push_back({.configuration = configuration,
                          .repeat = repeat,
                          .duration = options.duration,
                          .seed = request_seed(options.seed, configuration, repeat),
                          .sample_every = options.sample_every});
    }
  }
  return requests;
}

/// Takes observations from the target and stores them, in batches or one by one.
class Recorder {
 public:
  Recorder(results::RunStore& store, const RunOptions& options, bool batched)
      : store_(store), options_(options), batched_(batched) {}

  /// False when the store refuses.
  bool take(const target::MeasureRequest& request, Observation observation) {
    // The key is what was asked here, whatever the target filled in.
    observation.asked = request.configuration;
    observation.repeat = request.repeat;
    observation.seed = request.seed;
    if (!options_.metrics.empty()) {
      std::erase_if(observation.measures, [&](const auto& measure) {
        return std::find(options_.metrics.begin(), options_.metrics.end(), measure.first) ==
               options_.metrics.end();
      });
    }
    ++outcomes_[observation.outcome];
    if (observation.outcome != Outcome::kMeasured) {
      ++reasons_[observation.outcome][observation.reason];
    }
    pending_.push_back(std::move(observation));
    const bool full = pending_.size() >= kBatch || Clock::now() - last_flush_ > kBatchTime;
    return (batched_ && !full) || flush();
  }

  bool flush() {
    if (!error_ && !pending_.empty()) {
      auto stored = store_.append_all(pending_);
      if (!stored) error_ = stored.error();
      pending_.clear();
      last_flush_ = Clock::now();
    }
    return !error_;
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void add_to(RunSummary& summary) const {
    summary.outcomes = outcomes_;
    summary.reasons = reasons_;
  }

 private:
  results::RunStore& store_;
  const RunOptions& options_;
  bool batched_;
  std::vector<Observation> pending_;
  Clock::time_point last_flush_ = Clock::now();
  std::map<Outcome, std::size_t> outcomes_;
  std::map<Outcome, std::map<std::string, std::size_t>> reasons_;
  std::optional<Error> error_;
};

}  // namespace

std::uint64_t request_seed(std::uint64_t run_seed, const Configuration& configuration, int repeat) {
  // FNV-1a over the name, then the finalizer of splitmix64 so that neighbours differ in every bit.
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ run_seed;
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  for (const char c : configuration.name()) mix(static_cast<unsigned char>(c));
  for (int shift = 0; shift < 32; shift += 8) {
    mix(static_cast<unsigned char>(static_cast<unsigned>(repeat) >> shift));
  }
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebULL;
  return hash ^ (hash >> 31U);
}

Result<void> check_factors(const Campaign& campaign, const target::Info& info) {
  if (info.factors.empty()) return {};
  const std::set<std::string> of_masks = names_of_masks(campaign);  // with_masks sees to them
  for (const Factor& factor : campaign.factors) {
    if (of_masks.contains(factor.name)) continue;
    if (std::find(info.factors.begin(), info.factors.end(), factor.name) == info.factors.end()) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("{}: at /factors/{}: target {} does not vary it; it varies {}",
                      campaign.source, factor.name, info.name, fmt::join(info.factors, ", ")));
    }
  }
  return {};
}

Result<RunSummary> run(target::Target& device, std::span<const Configuration> plan,
                       results::RunStore& store, const RunOptions& options) {
  const auto begin = Clock::now();
  auto there = store.keys();
  if (!there) return pass_on(there);
  auto requests = missing(plan, *there, options);
  RunSummary summary;
  summary.total = plan.size() * static_cast<std::size_t>(options.repeats);
  summary.found = summary.total - requests.size();

  summary.complete = requests.empty();
  if (summary.complete) return summary;

  Recorder recorder(store, options, device.info().virtual_time);
  const target::InterruptGuard guard;
  Progress progress{.done = summary.found, .total = summary.total, .latest = nullptr};
  while (!requests.empty()) {
    std::vector<target::MeasureRequest> too_short;
    const auto measured = device.measure(requests, [&](std::size_t index, Observation observation) {
      const target::MeasureRequest& request = requests[index];
      const auto longer = longer_than(request.duration, options.duration);
      if (observation.outcome == Outcome::kTooShort && longer) {
        too_short.push_back(request);
        too_short.back().duration = *longer;
        return !target::interrupted();
      }
      if (request.duration != options.duration) {
        observation.environment["measured_for"] = to_string(request.duration);
      }
      ++summary.measured;
      ++progress.done;
      progress.latest = &observation;
      if (options.progress) options.progress(progress);
      return recorder.take(request, std::move(observation)) && !target::interrupted();
    });
    recorder.flush();
    if (recorder.error()) return tl::unexpected<Error>(*recorder.error());
    if (!measured && measured.error().code != ErrorCode::kInterrupted) return pass_on(measured);
    if (!measured || target::interrupted()) break;
    requests = std::move(too_short);
  }
  recorder.add_to(summary);
  summary.complete = summary.found + summary.measured == summary.total;
  summary.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return summary;
}

}  // namespace greynic::campaign
