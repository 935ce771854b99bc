#include "caller.h"

#include <fmt/core.h>
#include <grpcpp/server_context.h>

#include "greynic/agent/lab_files.h"
#include "greynic/daemon/log.h"

namespace greynic::agent {
namespace {

std::string property(const grpc::AuthContext& context, const char* name) {
  const auto values = context.FindPropertyValues(name);
  return values.empty() ? std::string() : std::string(values.front().data(), values.front().size());
}

}  // namespace

std::string owner_of(const grpc::AuthContext& context) {
  const std::string pem = property(context, "x509_pem_cert");
  return pem.empty() ? std::string() : fingerprint_of(pem);
}

std::string connection_of(std::string peer) {
  peer.erase(0, peer.rfind('/') + 1);
  for (const auto& [coded, plain] : {std::pair{"%5B", "["}, {"%5D", "]"}}) {
    if (const std::size_t at = peer.find(coded); at != std::string::npos)
      peer.replace(at, 3, plain);
  }
  return peer;
}

Caller caller_of(const grpc::ServerContext& context) {
  const auto shown = context.auth_context();
  Caller caller{.owner = owner_of(*shown),
                .common_name = property(*shown, "x509_common_name"),
                .connection = connection_of(context.peer()),
                .name = {}};
  caller.name = daemon::plain(caller.connection);
  if (!caller.owner.empty()) {
    caller.name = fmt::format("'{}' ({}) at {}", daemon::plain(caller.common_name, 64),
                              caller.owner.substr(0, 16), caller.name);
  }
  return caller;
}

}  // namespace greynic::agent
