#include "credentials.h"

#include <fmt/core.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fstream>
#include <iterator>
#include <memory>

namespace greynic::agent {
namespace {

struct Pair {
  std::string ca;
  std::string certificate;
  std::string key;
};

/// Out of date, or not yet in force: a certificate that no peer would take.
Result<void> check_dates(const std::string& path, const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate == nullptr) {
    return fail(ErrorCode::kBadInput,
                path + ": is no certificate; make the lab's anew with `greynic agent init`");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return fail(ErrorCode::kBadInput,
                path +
                    ": is out of date; make the lab's certificates anew with `greynic agent "
                    "init` (or set this host's clock)");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return fail(
        ErrorCode::kBadInput,
        path + ": is not yet valid; set the clock of this host, or of the one that made it");
  }
  return {};
}

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
  for (const auto& [name, text] :
       {std::pair{std::string("ca.pem"), &pair.ca}, {who + ".pem", &pair.certificate}}) {
    if (auto good = check_dates(directory + "/" + name, *text); !good) return pass_on(good);
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
