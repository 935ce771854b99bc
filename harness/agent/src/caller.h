#pragma once

/// Who is at the other end of a connection.

#include <grpcpp/security/auth_context.h>

#include <string>

#include "greynic/agent/lab.h"

namespace greynic::agent {

/// The fingerprint of the certificate at the other end; empty without TLS.
[[nodiscard]] std::string owner_of(const grpc::AuthContext& context);

}  // namespace greynic::agent
