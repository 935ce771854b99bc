#pragma once

/// Reads a lab's certificates for gRPC.

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "greynic/core/result.h"

namespace greynic::agent {

inline constexpr int kMostMessageBytes = 64 << 20;  ///< a million QPs in one message

/// With an empty directory: no TLS. Errors: kMissing names the file that cannot be read.
[[nodiscard]] Result<std::shared_ptr<grpc::ServerCredentials>> server_credentials(
    const std::string& directory);
[[nodiscard]] Result<std::shared_ptr<grpc::ChannelCredentials>> client_credentials(
    const std::string& directory);

}  // namespace greynic::agent
