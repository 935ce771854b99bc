#pragma once

/// Who is at the other end of a call.

#include <grpcpp/security/auth_context.h>

#include <string>

namespace greynic::agent {

struct Caller {
  std::string owner;       ///< fingerprint of its certificate; empty without TLS
  std::string connection;  ///< "10.0.0.7:41234", as daemon::Door names it
  std::string name;        ///< for logs: safe to print
};

[[nodiscard]] Caller caller_of(const grpc::AuthContext& context, const std::string& grpc_peer);

/// The fingerprint of the certificate at the other end; empty without TLS.
[[nodiscard]] std::string owner_of(const grpc::AuthContext& context);

}  // namespace greynic::agent
