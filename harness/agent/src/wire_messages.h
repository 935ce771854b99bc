#pragma once

/// Converts our types to protobuf messages and back.

#include "agent.pb.h"
#include "greynic/verbs/peer.h"

namespace greynic::agent {

inline constexpr int kMostMessageBytes = 64 << 20;  ///< a million QPs in one message

void write(const verbs::TrafficPlan& plan, wire::Plan& out);
[[nodiscard]] verbs::TrafficPlan read(const wire::Plan& in);
void write(const verbs::EndpointDescription& description, wire::Endpoint& out);
[[nodiscard]] Result<verbs::EndpointDescription> read(const wire::Endpoint& in);
void write(const verbs::PeerReport& report, wire::FinishReply& out);
[[nodiscard]] verbs::PeerReport read(const wire::FinishReply& in);
void write(const Error& error, wire::Fault& out);
[[nodiscard]] Error read(const wire::Fault& in);

}  // namespace greynic::agent
