#pragma once

/// Who is at the other end of a connection.

#include <grpcpp/security/auth_context.h>

#include <string>

#include "greynic/agent/lab.h"

namespace greynic::agent {

/// The fingerprint of the certificate at the other end; empty without TLS.
[[nodiscard]] std::string owner_of(const grpc::AuthContext& context);
/// gRPC's name of a far end behind a daemon::Door, as the door has it:
/// "unix-abstract:greynic-1a2b/%5Bfe80::7%5D:41234" is "[fe80::7]:41234".
[[nodiscard]] std::string connection_of(std::string peer);

}  // namespace greynic::agent
