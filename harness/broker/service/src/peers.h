#pragma once

/// Other brokers: who they are, how they are reached, and whether they live.
///
/// A link is one TCP connection to the broker at an address. Whoever needs it first dials. If both
/// dial at once, the one with the smaller number, drawn when it started, is the one whose call
/// counts. A broker that comes back under a new number takes the place of the one before it.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/broker/core.h"
#include "link_security.h"
#include "link_stream.h"

namespace greynic::broker {

/// Where a broker listens: an IPv6 address, or IPv4 as ::ffff:a.b.c.d, and a port.
struct BrokerAddress {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  auto operator<=>(const BrokerAddress&) const = default;
};
[[nodiscard]] std::string text_of(const BrokerAddress& address);
/// "127.0.0.1:18700" or "[::1]:18700", numbers only. kBadInput.
[[nodiscard]] Result<BrokerAddress> broker_address(const std::string& text);

/// What two brokers tell each other first.
struct Hello {
  std::uint32_t magic = 0x67'72'6c'02;
  std::uint16_t lanes = 0;  ///< for each peer, latency and bulk
  std::uint16_t port = 0;   ///< where it listens; 0: nowhere
  std::uint64_t number = 0;
  std::uint32_t lid = 0;  ///< of its port, on InfiniBand
  std::uint32_t spare = 0;
};

class Peers {
 public:
  using Clock = std::chrono::steady_clock;
  /// Whom it tells.
  struct Calls {
    std::function<bool(PeerId)> on_up;  ///< false: no link can be made, hang up
    std::function<void(PeerId)> on_down;
    std::function<void(PeerId, std::span<const std::byte>)> on_call;
    /// 0, or why an awaited link does not come about.
    std::function<void(const BrokerAddress&, PeerId, int error)> on_answer;
    std::function<void(const std::string&)> tell;
    std::function<void(int socket, bool also_write)> watch;  ///< tell me when it can be moved
    /// The socket is about to be closed. The door has a duplicate, so it would be told on.
    std::function<void(int socket)> forget;
    std::function<void(const std::string& door_name)> on_proven;
  };
  /// `security`: null for links in the clear.
  Peers(const Hello& own, const BrokerAddress& listens, std::chrono::seconds silence,
        std::unique_ptr<LinkSecurity> security, Calls calls);

  /// The link to it, or 0: on_answer follows.
  [[nodiscard]] PeerId reach(const BrokerAddress& address);
  /// Where the broker listens whose port has this LID; nothing: none that is met has it.
  [[nodiscard]] std::optional<BrokerAddress> with_lid(std::uint16_t lid) const;
  /// A connection that came in by the door.
  void take(int socket);
  /// The socket can be read or written.
  void move(int socket);
  void call(PeerId peer, std::span<const std::byte> bytes);
  void hang_up(PeerId peer, const std::string& why);
  /// Sends heartbeats, and ends those who are silent.
  void tick(Clock::time_point now);
  /// Of zeros when there is none.
  [[nodiscard]] std::array<std::uint8_t, 16> address_of(PeerId peer);
  [[nodiscard]] std::vector<std::pair<std::string, PeerId>> list() const;

 private:
  struct Link {
    Link(int socket, ssl_st* tls) : stream(socket, tls) {}
    LinkStream stream;
    BrokerAddress far;
    bool dialed = false;
    bool yields = false;  ///< the other side's call counts: wait for it
    PeerId peer = 0;      ///< 0: no hello has come yet
    std::uint64_t number = 0;
    std::uint32_t lid = 0;
    Clock::time_point heard, beat;
  };
  void dial(const BrokerAddress& address);
  void handle(Link& link, const Message& message);
  void greet(Link& link, const Message& message);
  void refuse(Link& link, const std::string& why);
  void end(int socket, const std::string& why);
  [[nodiscard]] Link* link_of(PeerId peer);

  Hello own_;
  BrokerAddress listens_;
  std::chrono::seconds silence_;
  std::unique_ptr<LinkSecurity> security_;
  Calls calls_;
  Clock::time_point security_read_;
  std::map<int, std::unique_ptr<Link>> links_;  ///< by socket
  std::map<BrokerAddress, PeerId> reached_;
  std::map<BrokerAddress, Clock::time_point> awaited_;  ///< until when
  PeerId next_ = 16;                                    ///< the first are the service's own
};

}  // namespace greynic::broker
