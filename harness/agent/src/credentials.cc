#include "credentials.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace greynic::agent {
namespace {

struct Pair {
  std::string ca;
  std::string certificate;
  std::string key;
};

Result<Pair> read_pair(const std::string& directory, const std::string& who) {
  Pair pair;
  for (const auto& [name, text] : {std::pair{std::string("ca.pem"), &pair.ca},
                                   {who + ".pem", &pair.certificate},
                                   {who + ".key", &pair.key}}) {
    const std::string path = directory + "/" + name;
    std::ifstream file(path);
    text->assign(std::istreambuf_iterator<char>(file), {});
    if (text->empty()) {
      return fail(ErrorCode::kMissing,
                  fmt::format("{}: cannot be read; make the lab's certificates with `greynic agent "
                              "init {}` and copy them to every host",
                              path, directory));
    }
  }
  return pair;
}

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const std::string& directory) {
  if (directory.empty()) return grpc::InsecureServerCredentials();
  auto pair = read_pair(directory, "agent");
  if (!pair) return pass_on(pair);
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pair->ca;
  options.pem_key_cert_pairs.push_back({pair->key, pair->certificate});
  return grpc::SslServerCredentials(options);
}

Result<std::shared_ptr<grpc::ChannelCredentials>> client_credentials(const std::string& directory) {
  if (directory.empty()) return grpc::InsecureChannelCredentials();
  auto pair = read_pair(directory, "client");
  if (!pair) return pass_on(pair);
  return grpc::SslCredentials({pair->ca, pair->key, pair->certificate});
}

}  // namespace greynic::agent
