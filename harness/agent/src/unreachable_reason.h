#pragma once

/// What gRPC says of connections that failed; why_unreached() of greynic/agent/lab.h says what to do.

#include <string_view>

namespace greynic::agent {

/// Somebody answers there but cannot be talked to, so trying again will not help.
[[nodiscard]] bool is_final(std::string_view grpc_words);

/// Keeps gRPC from writing to stderr, where it would repeat our own messages. With the environment
/// variable GRPC_VERBOSITY it writes again.
void silence_grpc();

}  // namespace greynic::agent
