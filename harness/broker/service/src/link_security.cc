#include "link_security.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "greynic/agent/lab_files.h"

namespace greynic::broker {
namespace {

using PemBytes = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

PemBytes pem_bytes(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

std::string fingerprint(X509* certificate) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  if (certificate == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1) return {};
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(out.get(), &text);
  return agent::fingerprint_of({text, static_cast<std::size_t>(bytes)});
}

Result<std::shared_ptr<SSL_CTX>> context_of(const agent::Identity& identity, bool answers) {
  const std::shared_ptr<SSL_CTX> context(
      SSL_CTX_new(answers ? TLS_server_method() : TLS_client_method()), SSL_CTX_free);
  const auto wrong = fail(ErrorCode::kBadInput, "the lab's certificates cannot be used by TLS");
  if (context == nullptr) return wrong;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  const PemBytes authorities = pem_bytes(identity.ca);
  bool any = false;
  for (;;) {
    const Certificate one(PEM_read_bio_X509(authorities.get(), nullptr, nullptr, nullptr),
                          X509_free);
    if (one == nullptr) break;
    any = X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get()) == 1 || any;
  }
  ERR_clear_error();
  const Certificate own(
      PEM_read_bio_X509(pem_bytes(identity.certificate).get(), nullptr, nullptr, nullptr),
      X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(pem_bytes(identity.key).get(), nullptr, nullptr, nullptr),
      EVP_PKEY_free);
  const bool good = any && own != nullptr && key != nullptr &&
                    SSL_CTX_use_certificate(context.get(), own.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1;
  if (!good) return wrong;
  return context;
}

}  // namespace

Result<std::unique_ptr<LinkSecurity>> LinkSecurity::open(const std::string& directory) {
  std::unique_ptr<LinkSecurity> made(new LinkSecurity(directory));
  if (auto read = made->read(); !read) return pass_on(read);
  return made;
}

LinkSecurity::~LinkSecurity() = default;

Result<void> LinkSecurity::read() {
  const std::string stamp =
      agent::stamp_of_identity(directory_) + agent::stamp_of_revoked(directory_);
  const auto server = agent::read_identity(directory_, "agent");
  if (!server) return pass_on(server);
  const auto client = agent::read_identity(directory_, "client");
  if (!client) return pass_on(client);
  auto revoked = agent::read_revoked(directory_);
  if (!revoked) return pass_on(revoked);
  auto answering = context_of(*server, true);
  if (!answering) return pass_on(answering);
  auto dialing = context_of(*client, false);
  if (!dialing) return pass_on(dialing);
  revoked_ = std::move(*revoked);
  answering_ = std::move(*answering);
  dialing_ = std::move(*dialing);
  for (SSL_CTX* context : {answering_.get(), dialing_.get()}) {
    SSL_CTX_set_app_data(context, this);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       &LinkSecurity::verify);
  }
  stamp_ = stamp;
  return {};
}

int LinkSecurity::verify(int good, X509_STORE_CTX* store) {
  if (good != 1 || X509_STORE_CTX_get_error_depth(store) != 0) return good;
  auto* link =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* self = static_cast<const LinkSecurity*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(link)));
  if (!self->revoked_.contains(fingerprint(X509_STORE_CTX_get_current_cert(store)))) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REVOKED);
  return 0;
}

std::string LinkSecurity::refresh() {
  const std::string stamp =
      agent::stamp_of_identity(directory_) + agent::stamp_of_revoked(directory_);
  if (stamp == stamp_) return {};
  const auto done = read();
  return done ? std::string() : done.error().message;
}

SSL* LinkSecurity::answer(int socket) {
  SSL* link = SSL_new(answering_.get());
  SSL_set_fd(link, socket);
  SSL_set_accept_state(link);
  return link;
}

SSL* LinkSecurity::dial(int socket, const std::array<std::uint8_t, 16>& address) {
  SSL* link = SSL_new(dialing_.get());
  SSL_set_fd(link, socket);
  SSL_set_connect_state(link);
  const bool ipv4 = std::all_of(address.begin(), address.begin() + 10,
                                [](std::uint8_t byte) { return byte == 0; }) &&
                    address[10] == 0xff && address[11] == 0xff;
  X509_VERIFY_PARAM_set1_ip(SSL_get0_param(link), address.data() + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
  return link;
}

bool LinkSecurity::is_revoked(SSL* link) const {
  const Certificate far(SSL_get1_peer_certificate(link), X509_free);
  return far != nullptr && revoked_.contains(fingerprint(far.get()));
}

}  // namespace greynic::broker
