#pragma once

/// What a new layout gains on a device. Old and new are measured in turn, in pairs, so that a drift
/// of the device affects both alike.
///
/// The ratio is judged on logarithms: of 5 pairs whose ratios are 2.0, 2.1, 1.9, 2.0 and 2.0 it is
/// their geometric mean, and its interval is Student's t over the 5 logarithms.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "greynic/model/model.h"
#include "greynic/target/target.h"

namespace greynic::loop {

struct GainQuestion {
  const target::FittedLayout* before = nullptr;
  const target::FittedLayout* after = nullptr;
  const Traffic* traffic = nullptr;
  target::Placement placement;
  Configuration at;
  std::string metric;
  std::chrono::nanoseconds duration{};
  std::uint64_t seed = 1;
  int pairs = 5;
};

/// New over old, with a 95 % interval.
struct Ratio {
  double value = 1.0;
  double low = 1.0;
  double high = 1.0;
};

/// Geometric means and the ratio new to old (Student's t over the pairs).
struct Gain {
  double before = 0.0;
  double after = 0.0;
  double ratio = 1.0;
  double ratio_low = 1.0;
  double ratio_high = 1.0;
  int pairs = 0;
  /// Everything else that the device measured, means over the pairs.
  std::map<std::string, double> measures_before;
  std::map<std::string, double> measures_after;
  std::map<std::string, Ratio> ratios;  ///< of measures that were positive in all pairs
};

/// Leaves the device with the new layout when `keep` says so, else with the rules it had. Errors:
/// kUnsupported when the target holds no rules; kRefused, with the reason, when a test is no
/// measurement.
[[nodiscard]] Result<Gain> measure_gain(target::Target& device, const GainQuestion& question,
                                        bool keep, const std::function<void(int pair)>& progress);

/// What the law said of the gain in one measure, beside what was measured.
struct Forecast {
  Ratio predicted;  ///< both sides' intervals taken as independent
  Ratio measured;
  bool refuted =
      false;  ///< the intervals have nothing in common, and the values differ by over 1 %
};

/// By measure: all that both predictions have and the device measured.
[[nodiscard]] std::map<std::string, Forecast> forecasts(const model::Prediction& before,
                                                        const model::Prediction& after,
                                                        const Gain& gain);

/// The gain as a run keeps it and `greynic report` reads it (docs/formats/gain.md). `predicted`:
/// what the model said of the new layout.
[[nodiscard]] std::string to_json_text(const Gain& gain, const GainQuestion& question,
                                       std::optional<double> predicted,
                                       const std::map<std::string, Forecast>& forecasts);

/// {"measure": {"predicted": {value, low, high}, "measured": {...}, "refuted"}}
[[nodiscard]] nlohmann::json to_json(const std::map<std::string, Forecast>& forecasts);

}  // namespace greynic::loop
