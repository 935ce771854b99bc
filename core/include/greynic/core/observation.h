#pragma once

/// What came of one configuration on one target: the record in which everything that touches
/// devices and everything that only thinks meet. It starts as kNotRun, so a forgotten step cannot
/// look like a success. A refusal or failed completion by the device is an outcome, with its verbs
/// name as reason.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/histogram.h"
#include "greynic/core/measure.h"

namespace greynic {

enum class Outcome : std::uint8_t {
  kNotRun,
  kMeasured,
  kRefused,  ///< the device would not set it up
  kFailed,   ///< it ran and broke: failed completion, crashed driver, dead peer
  kTimedOut,
  kTooShort,  ///< nothing completed within the measured time, so nothing is known of it
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
[[nodiscard]] std::optional<Outcome> outcome_named(std::string_view name);

/// One measured number. The standard error is that of the value; empty when it is not known.
struct Measure {
  double value = 0.0;
  std::optional<double> standard_error;
  bool operator==(const Measure&) const = default;
};

/// Did the measurement settle before its time was up? Targets that cannot tell leave it empty.
struct SteadyState {
  bool settled = false;
  double warmup_share = 0.0;  ///< share of the run that was cut
  std::string test;           ///< "MSER-5", "slope of 4 windows"
  bool operator==(const SteadyState&) const = default;
};

/// What a counter said while traffic ran. The time is since the traffic began, on a twin in virtual
/// time.
struct CounterSample {
  std::int64_t time_ns = 0;
  double value = 0.0;
  bool operator==(const CounterSample&) const = default;
};

struct Observation {
  Configuration asked;
  Configuration granted;  ///< what the target really set; empty: as asked
  int repeat = 0;         ///< 0-based
  Outcome outcome = Outcome::kNotRun;
  std::string reason;  ///< why not kMeasured; empty otherwise
  std::map<std::string, Measure> measures;
  std::map<std::string, double> counters_before;  ///< absolute, by name
  std::map<std::string, double> counters_after;
  /// Of those that moved, while it ran: where the request asked for samples.
  std::map<std::string, std::vector<CounterSample>> counter_samples;
  LatencyHistogram latency;
  std::optional<SteadyState> steady;
  std::uint64_t seed = 0;
  double elapsed_seconds = 0.0;                    ///< wall time that it took
  std::map<std::string, std::string> environment;  ///< host, NIC, firmware, driver, commit

  /// The value of a measure; empty when it was not taken or the run was not measured.
  [[nodiscard]] std::optional<double> value(std::string_view measure) const;
};

/// Leaves out counters that say the same in all their samples.
void keep_what_moved(std::map<std::string, std::vector<CounterSample>>& samples);

}  // namespace greynic
