#include "greynic/verbs/peer_claims.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace greynic::verbs {
namespace {

// No program of ours asks for more; a device's own limits are lower.
constexpr std::uint64_t kMostQps = 1U << 20U;
constexpr std::uint64_t kMostThreads = 4096;
constexpr std::uint64_t kMostSizes = 1U << 20U;
constexpr std::uint64_t kMostElements = 1024;
constexpr std::uint64_t kMostInline = 1U << 16U;
constexpr std::uint64_t kMostDepth = 1U << 24U;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46U;
constexpr std::uint64_t kMostMessageBytes = std::uint64_t{1} << 31U;
constexpr std::uint64_t kMostCounters = 4096;
constexpr std::chrono::milliseconds kLongestStall{600'000};

struct Bound {
  const char* name;
  std::uint64_t value;
  std::uint64_t least;
  std::uint64_t most;
};

Result<void> bad_plan(std::string_view what) {
  return fail(ErrorCode::kBadInput, fmt::format("the plan that was asked for: {}", what));
}

Result<void> check_bounds(const TrafficPlan& plan) {
  const std::uint64_t groups =
      (std::uint64_t{plan.qp_count} + plan.qps_per_cq - 1) / std::max(plan.qps_per_cq, 1U);
  for (const Bound& bound : {
           Bound{"qp_count", plan.qp_count, 1, kMostQps},
           Bound{"qps_per_cq", plan.qps_per_cq, 1, UINT32_MAX},
           Bound{"send_depth", plan.send_depth, 1, kMostDepth},
           Bound{"receive_depth", plan.receive_depth, 0, kMostDepth},
           Bound{"sizes", plan.sizes.size(), 1, kMostSizes},
           Bound{"elements", plan.elements.size(), 0,
                 std::min<std::uint64_t>(plan.sge_count, kMostElements)},
           Bound{"sge_count", plan.sge_count, 0, kMostElements},
           Bound{"signal_every", plan.signal_every, 1, plan.send_depth},
           Bound{"post_batch", plan.post_batch, 1, plan.send_depth},
           Bound{"receive_batch", plan.receive_batch, 1, std::max(plan.receive_depth, 1U)},
           Bound{"inline_bytes", plan.inline_bytes, 0, kMostInline},
           Bound{"mr_count", plan.mr_count, 1, kMostQps},
           Bound{"mr_bytes", plan.mr_bytes, 0, kMostBytes},
           Bound{"thread_count", plan.thread_count, 1, std::min(groups, kMostThreads)},
           Bound{"stall_limit", static_cast<std::uint64_t>(plan.stall_limit.count()), 1,
                 static_cast<std::uint64_t>(kLongestStall.count())},
           Bound{"sizes", plan.sizes.empty() ? 0 : plan.largest_message(), 0, kMostMessageBytes},
       }) {
    if (bound.value < bound.least || bound.value > bound.most) {
      return bad_plan(fmt::format("{} {} is not from {} to {}", bound.name, bound.value,
                                  bound.least, bound.most));
    }
  }
  return {};
}

Result<void> lies(std::string_view what) {
  return fail(ErrorCode::kIo, fmt::format("the peer does not fit the run: {}", what));
}

Result<void> check_length(const char* name, std::size_t told, std::size_t wanted) {
  if (told == wanted) return {};
  return lies(fmt::format("it has {} {} instead of {}", told, name, wanted));
}

bool all_finite(const std::map<std::string, double>& counters) {
  return std::all_of(counters.begin(), counters.end(),
                     [](const auto& counter) { return std::isfinite(counter.second); });
}

}  // namespace

Result<void> check_plan(const TrafficPlan& plan) {
  if (auto good = check_bounds(plan); !good) return good;
  if (!std::isfinite(plan.offered_rate) || plan.offered_rate < 0) {
    return bad_plan("offered_rate is not a rate");
  }
  if (!plan.elements.empty()) {
    const std::uint64_t sum =
        std::accumulate(plan.elements.begin(), plan.elements.end(), std::uint64_t{0});
    if (plan.sizes.size() != 1 || sum != plan.sizes.front()) {
      return bad_plan("its elements are not the pieces of its message");
    }
  }
  if (plan.transport == Transport::kXRC && !plan.shared_receive_queue) {
    return bad_plan("XRC knows no other receive queues than shared ones");
  }
  if (plan.mode == Mode::kLatency) {
    if (plan.signal_every != 1 || plan.post_batch != 1 || plan.receive_batch != 1 ||
        plan.thread_count != 1 || plan.direction == Direction::kBidirectional) {
      return bad_plan("in latency mode one message at a time goes one way, from one thread");
    }
    const bool marked = plan.operation == Opcode::kWrite;
    if (marked && *std::min_element(plan.sizes.begin(), plan.sizes.end()) == 0) {
      return bad_plan("in latency mode a WRITE has a byte at least, which tells that it came");
    }
  }
  return {};
}

Result<void> check_description(const EndpointDescription& told, const TrafficPlan& plan,
                               const EndpointRole& own) {
  const bool xrc = plan.transport == Transport::kXRC;
  const bool inverts = plan.operation == Opcode::kSendWithInv;
  const std::size_t lanes = plan.qp_count;
  const std::size_t groups = (lanes + plan.qps_per_cq - 1) / plan.qps_per_cq;
  if (own.answers || !xrc) {
    if (auto good = check_length("QPs", told.qp_numbers.size(), lanes); !good) return good;
  }
  if (told.target_keys.size() != told.target_addresses.size()) {
    return lies(fmt::format("it has {} keys for {} addresses", told.target_keys.size(),
                            told.target_addresses.size()));
  }
  if (!own.requests) return {};
  // The other end answers: what is addressed there.
  if (auto good = check_length("target regions", told.target_keys.size(), plan.mr_count); !good) {
    return good;
  }
  if (xrc) {
    if (auto good = check_length("XRC targets", told.xrc_targets.size(), lanes); !good) return good;
    const std::size_t queues = takes_receive(plan.operation) ? groups : 0;
    if (auto good = check_length("shared receive queues", told.srq_numbers.size(), queues); !good) {
      return good;
    }
  }
  const std::size_t windows = inverts ? lanes * windows_per_lane(plan) : 0;
  return check_length("memory windows", told.window_keys.size(), windows);
}

Result<void> check_report(const PeerReport& told, const TrafficPlan& plan) {
  if (told.counters_before.size() > kMostCounters || told.counters_after.size() > kMostCounters) {
    return lies(fmt::format("it counts more than {} things", kMostCounters));
  }
  if (!all_finite(told.counters_before) || !all_finite(told.counters_after)) {
    return lies("one of its counters is no number");
  }
  const bool both = plan.direction == Direction::kBidirectional;
  if (told.requests.has_value() != both) {
    return lies(both ? "it does not say what it sent" : "it says that it sent");
  }
  if (!both) return {};
  if (!std::isfinite(told.requests->messages_per_second) ||
      told.requests->messages_per_second < 0) {
    return lies("its rate of messages is no number");
  }
  return check_length("lanes in its report", told.requests->completed_by_lane.size(),
                      plan.qp_count);
}

}  // namespace greynic::verbs
