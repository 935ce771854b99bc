#pragma once

/// Mutual TLS for links between brokers, with a lab's certificates (docs/formats/
/// agent_certificates.md): who is called shows agent.pem, which must name the address that was
/// dialed; who calls shows client.pem. Both must be of the lab and not revoked.

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "greynic/core/result.h"

struct ssl_ctx_st;
struct ssl_st;
struct x509_store_ctx_st;

namespace greynic::broker {

class LinkSecurity {
 public:
  /// Errors: kMissing, kBadInput, as read_identity.
  [[nodiscard]] static Result<std::unique_ptr<LinkSecurity>> open(const std::string& directory);
  ~LinkSecurity();
  LinkSecurity(const LinkSecurity&) = delete;
  LinkSecurity& operator=(const LinkSecurity&) = delete;

  /// For a link that came in.
  [[nodiscard]] ssl_st* answer(int socket);
  /// For one that goes out to an address (IPv6, or IPv4 as ::ffff:a.b.c.d).
  [[nodiscard]] ssl_st* dial(int socket, const std::array<std::uint8_t, 16>& address);
  /// Reads the directory anew when its files have changed; why it could not, or nothing.
  std::string refresh();
  /// Whether the other end's certificate has been revoked since.
  [[nodiscard]] bool is_revoked(ssl_st* link) const;

 private:
  explicit LinkSecurity(std::string directory) : directory_(std::move(directory)) {}
  Result<void> read();
  static int verify(int good, x509_store_ctx_st* store);

  std::string directory_;
  std::string stamp_;
  std::shared_ptr<ssl_ctx_st> answering_, dialing_;
  std::set<std::string> revoked_;
};

}  // namespace greynic::broker
