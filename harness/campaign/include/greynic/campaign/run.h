#pragma once

/// Runs a plan on a target and stores every observation.
///
/// Only what the store does not hold yet is measured, so a run that was stopped goes on with the
/// same call and repeats nothing. All configurations get their first repeat before any gets its
/// second: a slow drift of the device then spreads over all of them alike, and a run that was cut
/// short has still seen every configuration.
///
/// A measurement in which nothing completed (Outcome::kTooShort) says nothing of its configuration.
/// It is repeated for 4, 16 and 64 times the time asked, but not beyond two minutes, when all else
/// is measured. The observation then says how long it took, as environment "measured_for"; only
/// what is still too short after that is stored as such.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "greynic/core/campaign.h"
#include "greynic/results/store.h"
#include "greynic/target/target.h"

namespace greynic::campaign {

/// Told after each observation.
struct Progress {
  std::size_t done = 0;   ///< observations stored or about to be, those of earlier calls included
  std::size_t total = 0;  ///< configurations x repeats
  const Observation* latest = nullptr;
};

struct RunOptions {
  int repeats = 3;
  std::chrono::nanoseconds duration = std::chrono::seconds(1);  ///< of one repeat
  std::uint64_t seed = 1;            ///< each request's seed follows from it and the request alone
  std::vector<std::string> metrics;  ///< measures to keep; empty: all
  std::chrono::nanoseconds sample_every{0};  ///< counters while traffic runs; 0: not
  std::function<void(const Progress&)> progress;  ///< may be empty
};

struct RunSummary {
  std::size_t total = 0;                    ///< configurations x repeats
  std::size_t found = 0;                    ///< were stored before
  std::size_t measured = 0;                 ///< were stored now, whatever their outcome
  std::map<Outcome, std::size_t> outcomes;  ///< of those stored now
  /// Why, for those stored now that were not measured, and how often.
  std::map<Outcome, std::map<std::string, std::size_t>> reasons;
  bool complete = false;  ///< nothing is left to do
  double seconds = 0.0;   ///< wall time of this call
};

/// kInterrupted is no error here: the summary is then not complete. Errors: those of the target
/// (what was stored stays) and of the store.
[[nodiscard]] Result<RunSummary> run(target::Target& device, std::span<const Configuration> plan,
                                     results::RunStore& store, const RunOptions& options);

/// kBadInput when the target does not honour a factor of the campaign, or greynic does not know it
/// and the target does not take just any; names the factor, and what the target offers.
[[nodiscard]] Result<void> check_factors(const Campaign& campaign, const target::Info& info);

/// The seed of one request: the same for the same run seed, configuration and repeat, whatever the
/// order of measuring and however often the run was resumed.
[[nodiscard]] std::uint64_t request_seed(std::uint64_t run_seed, const Configuration& configuration,
                                         int repeat);

}  // namespace greynic::campaign
