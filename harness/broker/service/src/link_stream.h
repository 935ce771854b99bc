#pragma once

/// Whole messages over a TCP connection between two brokers, in the clear or under TLS, without
/// ever waiting.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct ssl_st;

namespace greynic::broker {

/// The first byte of a message.
enum class MessageKind : std::uint8_t {
  kHello = 1,  ///< Hello: from both sides, the first of each
  kRefuse,     ///< text: why no link comes about
  kCall,       ///< bytes for Core::on_peer_call
  kBeat,       ///< nothing; says that the sender lives
};

struct Message {
  MessageKind kind = MessageKind::kBeat;
  std::vector<std::byte> body;
};

class LinkStream {
 public:
  /// Takes the non-blocking socket over, and the TLS on it if there is one.
  LinkStream(int socket, ssl_st* tls) : socket_(socket), tls_(tls) {}
  ~LinkStream();
  LinkStream(const LinkStream&) = delete;
  LinkStream& operator=(const LinkStream&) = delete;

  void send(MessageKind kind, std::span<const std::byte> body);
  /// Moves what can be moved; false when the connection is over: end() says why.
  bool move();
  /// The next whole message.
  std::optional<Message> next();
  [[nodiscard]] bool wants_to_write() const { return !out_.empty() || tls_wants_write_; }
  [[nodiscard]] const std::string& end() const { return end_; }
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] ssl_st* tls() const { return tls_; }

 private:
  bool read_all();
  bool write_all();
  /// Bytes moved; 0: later; -1: over, and end() says why.
  long read_some(std::byte* into, std::size_t most);
  long write_some(const std::byte* from, std::size_t most);
  long judge(int result);

  int socket_;
  ssl_st* tls_;
  bool tls_wants_write_ = false;
  std::vector<std::byte> in_, out_;
  std::string end_;
};

}  // namespace greynic::broker
