#pragma once

/// Brings a proven layout from one rule set to another, rule by rule.

#include <cstdint>
#include <functional>
#include <vector>

#include "greynic/optimizer/live.h"

namespace greynic::optimizer {

struct UpdateSum {
  std::size_t kept = 0;
  std::size_t came = 0;
  std::size_t gone = 0;
  std::size_t weighed = 0;  ///< steps that changed a weight alone
  std::size_t rebuilds = 0;
  std::size_t entries_added = 0;  ///< rules of the layout, in all steps that rebuilt nothing
  std::size_t entries_removed = 0;
  std::size_t matchers_added = 0;
  std::size_t matchers_removed = 0;
  double most_drift = 0.0;  ///< after any step
  std::size_t waited = 0;   ///< steps whose packets went to software (FullLayouts::kBeside)
  double longest_wait_seconds = 0.0;  ///< until all packets were the hardware's again
  std::vector<double> step_seconds;   ///< sorted
};

/// For each rule of `before` its place in `now`, or -1 where it went. A rule is the same when table,
/// match and actions are, and when it stands in the same order with all others that stay: numbers of
/// priorities do not count. Of two orders the rules that stay are as many as can be.
[[nodiscard]] std::vector<std::int64_t> rules_that_stay(const RuleSet& before, const RuleSet& now);

/// `live` holds the rules of `before`, as create() took them; afterwards those of `now`, in its order,
/// with its weights (FlowRule::weight, where positive) and lines. When a step needs a full layout and
/// LiveOptions::full_layouts is kNever, `now` is laid out at once, and the steps that are left are
/// spared. With kBeside it ends when no packets go to software. `on_step` hears the share done.
[[nodiscard]] Result<UpdateSum> update(LiveLayout& live, const RuleSet& before, const RuleSet& now,
                                       const std::function<void(double)>& on_step = {});

/// Gives each rule the share of the traffic that it decides as its weight. Rules that decide nothing
/// get next to nothing.
void weigh_rules(RuleSet& rules, const Traffic& traffic);

}  // namespace greynic::optimizer
