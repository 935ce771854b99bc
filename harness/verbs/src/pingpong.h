#pragma once

/// Latency mode: one message in flight, lanes in turn.

#include <optional>

#include "greynic/verbs/traffic.h"

namespace greynic::verbs {

[[nodiscard]] RequestReport run_pings(Endpoint& endpoint, std::chrono::nanoseconds duration,
                                      const std::atomic<bool>& stop);

/// The answering half of WRITE pings: watches the last byte of each lane's buffer in turn and
/// writes it back. SEND pings are answered by the receiver's loop.
void answer_writes(Endpoint& endpoint, const std::atomic<bool>& stop, AnswerReport& report);

/// One signalled message and its completion. kTimedOut after the plan's stall limit.
class Poster;
[[nodiscard]] std::optional<Failure> send_one(Endpoint& endpoint, Poster& poster,
                                              std::uint32_t lane, std::uint64_t message);

}  // namespace greynic::verbs
