#pragma once

/// Traffic to several peers at once. The QPs of a plan are dealt to the peers in blocks; at this
/// end each peer has its own CQs, memory regions and threads. Their reports become one.

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "greynic/verbs/peer.h"

namespace greynic::verbs {

/// The part of each of `peers`: QPs as evenly as can be, threads and regions divided (at least one
/// each), the offered rate by QPs. Errors: kBadInput where there are fewer QPs than peers.
[[nodiscard]] Result<std::vector<TrafficPlan>> deal(const TrafficPlan& plan, std::size_t peers);

/// What one peer takes part in.
struct Part {
  Peer* peer = nullptr;
  TrafficPlan plan;
  std::optional<Endpoint> mine;
  std::optional<Answerer> answerer;
  EndpointDescription theirs;
  RequestReport report;
};

/// All parts at once, each in threads of its own; where one fails the others end too.
void drive(std::deque<Part>& parts, std::chrono::nanoseconds duration);

/// Rates and counts add up, histograms merge; a failure that says more than a flush goes first.
[[nodiscard]] RequestReport merged(std::span<const RequestReport> parts);
[[nodiscard]] AnswerReport merged(std::span<const AnswerReport> parts);

/// Before the names of counters of a peer: "peer." where it is the only one, else "peer1.", "peer2.".
[[nodiscard]] std::string counter_prefix(std::size_t peer, std::size_t peers);

[[nodiscard]] PeerReport merged(std::span<const PeerReport> parts);

}  // namespace greynic::verbs
