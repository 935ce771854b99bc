#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "command.h"
#include "greynic/optimizer/split.h"

namespace greynic::cli {

/// `greynic optimize --hardware` and what belongs to it.
struct SplitFlags {
  std::optional<std::size_t> entries;
  double share = 0.0;  ///< of the rules, where no number of entries is given
  double slow_path = optimizer::SplitOptions{}.slow_path;
  double new_flows = optimizer::SplitOptions{}.new_flows;
  std::optional<std::chrono::nanoseconds> idle;  ///< none: entries stay
  [[nodiscard]] bool asked() const { return entries.has_value() || share > 0.0; }
};

/// Adds the flags; returns --hardware.
Option add_splitting(Command& command, SplitFlags& flags);

/// The layout of hardware and slow path. `search` says what is known of the device.
[[nodiscard]] Result<optimizer::Split> split_rules(const SplitFlags& flags, const RuleSet& rules,
                                                   const Traffic& traffic,
                                                   const optimizer::OptimizeOptions& search);

/// For people.
[[nodiscard]] std::string split_text(const SplitFlags& flags, const optimizer::Split& split);
/// Schema `optimization`, with `hardware`.
[[nodiscard]] std::string split_json(const SplitFlags& flags, const optimizer::Split& split,
                                     const std::string& rules, const std::string& traffic);

}  // namespace greynic::cli
