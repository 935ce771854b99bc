#pragma once

/// What the other end says is held against what it can be, before any of it is used. A peer may be
/// broken or hostile: an array that is shorter than another, a count that no program of ours asks
/// for, or a rate that is no number must end in an error and nothing else.

#include "greynic/verbs/endpoint.h"
#include "greynic/verbs/peer.h"

namespace greynic::verbs {

/// A plan is such that plan_from could have made it: counts from 1, lists within their queues,
/// bounded lengths. kBadInput names the field. What a device can hold is asked by impossible().
[[nodiscard]] Result<void> check_plan(const TrafficPlan& plan);

/// Every array that an end of this role reads has the length that the plan gives it. `groups` are
/// the CQ groups of the plan. kIo names the array.
[[nodiscard]] Result<void> check_description(const EndpointDescription& told,
                                             const TrafficPlan& plan, const EndpointRole& own);

/// Counts by lane are of as many lanes as the plan has; numbers are numbers. kIo.
[[nodiscard]] Result<void> check_report(const PeerReport& told, const TrafficPlan& plan);

}  // namespace greynic::verbs
