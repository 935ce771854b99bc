#include "credentials.h"

#include "greynic/agent/lab_files.h"

namespace greynic::agent {

Result<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const std::string& directory) {
  if (directory.empty()) return grpc::InsecureServerCredentials();
  auto identity = read_identity(directory, "agent");
  if (!identity) return pass_on(identity);
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = identity->ca;
  options.pem_key_cert_pairs.push_back({identity->key, identity->certificate});
  return grpc::SslServerCredentials(options);
}

Result<std::shared_ptr<grpc::ChannelCredentials>> client_credentials(const std::string& directory) {
  if (directory.empty()) return grpc::InsecureChannelCredentials();
  auto identity = read_identity(directory, "client");
  if (!identity) return pass_on(identity);
  return grpc::SslCredentials({identity->ca, identity->key, identity->certificate});
}

}  // namespace greynic::agent
