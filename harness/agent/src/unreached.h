#pragma once

/// Why a peer is not reached, in words that say what to do: gRPC knows, and tells its log and the
/// status of a call in its own words only.

#include <string>
#include <string_view>

namespace greynic::agent {

/// `grpc_words` is the message of a call that failed because there was no connection.
[[nodiscard]] std::string why_unreached(std::string_view grpc_words);

/// Trying again will not help: somebody is there, but not one to talk to.
[[nodiscard]] bool is_final(std::string_view grpc_words);

/// Keeps gRPC from writing to stderr, where it repeats what our own messages say. GRPC_VERBOSITY
/// brings it back.
void silence_grpc();

}  // namespace greynic::agent
