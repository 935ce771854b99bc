#pragma once

/// Negative tests on a device: do what a row of the fault table (core) says on a connected pair of
/// QPs, and compare the status that came with the one expected. They run as campaigns: the measure
/// `status_as_expected_share` is 1 where the device answered as it should, so a deviation is a wall
/// like any other.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/fault_table.h"
#include "greynic/verbs/traffic.h"

namespace greynic::verbs {

/// What one driver is known to answer instead of the specification's status.
struct StatusDeparture {
  std::string_view driver;  ///< prefix of Device::driver()
  std::string_view fault;
  std::string_view operation;
  std::string_view status;
  std::string_view source;
};
[[nodiscard]] std::span<const StatusDeparture> known_departures();

struct FaultResult {
  /// Verbs name of the status that came, "no completion", or what came of posting: kNotPosted.
  std::string observed;
  std::string expected;  ///< of this driver: the book, unless a departure is known
  bool as_expected = false;
  bool by_the_book = false;
};

/// The plan of a negative test: one QP at each end, small queues. Both ends build theirs from
/// it, so the other end may be in this process or behind an agent.
[[nodiscard]] TrafficPlan fault_plan(const FaultRow& row, const TrafficPlan& base);

/// Timers of the requesting end: few, short retries, so that each test ends soon.
[[nodiscard]] ConnectOptions fault_timers();

/// Commits the fault on a connected endpoint of fault_plan. Errors: kRefused when the QP cannot be
/// brought into the state that the fault needs. No wait is longer than the plan's stall limit.
[[nodiscard]] Result<FaultResult> provoke(Endpoint& endpoint, const FaultRow& row,
                                          std::string_view driver);

}  // namespace greynic::verbs
