#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "greynic/core/flow_rule.h"
#include "greynic/loop/follow.h"

namespace greynic::cli {

struct FollowFlags {
  std::chrono::nanoseconds every = std::chrono::seconds(10);
  std::optional<int> polls;  ///< then it ends; else on a signal
  bool as_json = false;
  loop::FollowOptions options;
};

/// `greynic optimize --follow`: installs the layout, or the one in the store, and keeps it in order
/// until a signal comes; the exit code. The layout stays on the device.
int follow_rules(const FollowFlags& flags, RuleSet rules, const Layout& layout,
                 target::RuleHolder& holder);

}  // namespace greynic::cli
