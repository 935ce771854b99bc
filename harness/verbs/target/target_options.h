#pragma once

/// The options behind the "?" of a verbs target's name: what no factor says.

#include <chrono>
#include <map>
#include <string>

#include "greynic/verbs/traffic_plan.h"

namespace greynic::verbs {

struct TargetOptions {
  TrafficPlan base;
  int port = 1;
  std::string peer_device;
  std::string peer_gid = "auto";
  bool optional_counters = false;
  std::string peer_counters;  ///< where each peer's are READ, with commas between
  std::string counters;       ///< file for the arena of the counters; empty: nobody else sees them
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
};

/// kBadInput names the option, and the ones there are.
[[nodiscard]] Result<TargetOptions> read_options(const std::map<std::string, std::string>& given);

}  // namespace greynic::verbs
