#pragma once

/// Converts our types to protobuf messages and back. What is read came from outside: text is made
/// plain and short, and a number that is no value of its type is an error. Whether the parts fit
/// together is asked by greynic/verbs/peer_claims.h.

#include "agent.pb.h"
#include "greynic/verbs/peer.h"

namespace greynic::agent {

void write(const verbs::TrafficPlan& plan, wire::Plan& out);
[[nodiscard]] Result<verbs::TrafficPlan> read(const wire::Plan& in);
void write(const verbs::EndpointDescription& description, wire::Endpoint& out);
[[nodiscard]] Result<verbs::EndpointDescription> read(const wire::Endpoint& in);
void write(const verbs::PeerReport& report, wire::FinishReply& out);
[[nodiscard]] verbs::PeerReport read(const wire::FinishReply& in);
void write(const Error& error, wire::Fault& out);
[[nodiscard]] Error read(const wire::Fault& in);

}  // namespace greynic::agent
