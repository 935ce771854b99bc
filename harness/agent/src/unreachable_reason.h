#pragma once

/// Turns gRPC's words for a failed connection into a reason that says what to do.

#include <string>
#include <string_view>

namespace greynic::agent {

/// `grpc_words` is the message of a call that failed because there was no connection.
[[nodiscard]] std::string why_unreached(std::string_view grpc_words);

/// Somebody answers there but cannot be talked to, so trying again will not help.
[[nodiscard]] bool is_final(std::string_view grpc_words);

/// Keeps gRPC from writing to stderr, where it would repeat our own messages. With the environment
/// variable GRPC_VERBOSITY it writes again.
void silence_grpc();

}  // namespace greynic::agent
