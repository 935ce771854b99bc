#pragma once

/// What a new layout gains on a device: measured in pairs, old and new in turn, so that a drift of
/// the device meets both alike.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "greynic/target/target.h"

namespace greynic::cli {

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

/// Geometric means and the ratio new to old with its 95 % interval (Student's t over the pairs).
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
};

/// Leaves the device with the new layout when `keep` says so, else with the rules it had. Errors:
/// kUnsupported when the target holds no rules; kRefused, with the reason, when a test is no
/// measurement.
[[nodiscard]] Result<Gain> measure_gain(target::Target& device, const GainQuestion& question,
                                        bool keep, const std::function<void(int pair)>& progress);

}  // namespace greynic::cli
