#pragma once

/// A private Open vSwitch for a test, or the reason why there is none.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "greynic/target/target.h"
#include "ovs/private_switch.h"

#define GREYNIC_NEEDS_OVS()                                            \
  if (const auto obstacle = greynic::flows::PrivateSwitch::obstacle(); \
      !obstacle.why_not.empty()) {                                     \
    GTEST_SKIP() << obstacle.why_not << "; " << obstacle.remedy;       \
  }                                                                    \
  static_assert(true)

namespace greynic::flows {

/// Measures all requests in rounds, at most eight, until `enough` says so, and keeps the cheapest
/// observation of each. What else runs on this machine only adds to a packet's cost, so the
/// cheapest of several is nearest to the truth however busy the machine is.
inline std::vector<Observation> cheapest_of_rounds(
    target::Target& target, const std::vector<target::MeasureRequest>& requests,
    const std::function<bool(const std::vector<Observation>&)>& enough) {
  const auto cost = [](const Observation& one) { return one.value("packet_cost_ns").value_or(1e9); };
  std::vector<Observation> cheapest(requests.size());
  for (int round = 0; round < 8 && (round == 0 || !enough(cheapest)); ++round) {
    const auto done = target.measure(requests, [&](std::size_t i, Observation got) {
      EXPECT_EQ(got.outcome, Outcome::kMeasured) << got.reason;
      if (round == 0 || cost(got) < cost(cheapest[i])) cheapest[i] = std::move(got);
      return true;
    });
    EXPECT_TRUE(done.has_value()) << done.error().message;
    if (!done) break;
  }
  return cheapest;
}

}  // namespace greynic::flows
