#pragma once

/// What processes of a lab say to its broker, and through it to each other: fixed messages over a
/// socket of kind SOCK_SEQPACKET in the abstract namespace, with descriptors beside them. Data never
/// goes this way: two processes share a ring for each direction (ring.h).

#include <array>
#include <cstdint>
#include <string>

namespace greynic::lab {

/// Environment of programs in a lab.
inline constexpr const char* kSocketVariable = "GREYNIC_LAB";
inline constexpr const char* kHostVariable = "GREYNIC_LAB_HOST";
/// Servers that listen on every address get this one, so pairs do not collide.
inline constexpr const char* kOwnAddressVariable = "GREYNIC_LAB_ADDRESS";

/// A QP number is the slot of its process and a number in it; so is that of an XRC SRQ.
inline constexpr std::uint32_t kIndexBits = 14, kMostSlots = 1U << 10;
constexpr std::uint32_t slot_of(std::uint32_t number) { return number >> kIndexBits; }

/// The virtual RNIC of a host.
struct DeviceCard {
  std::array<char, 64> model{};  ///< "ConnectX-6"
  std::uint32_t part = 0;        ///< PCI device id
  std::uint32_t link_gbps = 0;
  bool operator==(const DeviceCard&) const = default;
};

/// Hosts of a lab have addresses of the loopback net, so that TCP finds them too.
constexpr std::uint32_t address_of(std::uint32_t network, std::uint32_t host) {
  return 127U << 24 | network << 16 | (host + 1);
}
std::string address_text(std::uint32_t network, std::uint32_t host);

enum class MessageKind : std::uint32_t {
  kHost,         ///< to the broker: a lab-run has programs on `host`, whose RNIC is `card`
  kWelcome,      ///< `network`; `error`: 0, or EEXIST for a host with another RNIC
  kHello,        ///< to the broker: a process of `host`; with its bell
  kAdmitted,     ///< `slot`, `network`, `card`; `error`: ENOSPC, ENODEV
  kOpenRing,     ///< to the broker: a ring to `slot`; with the ring
  kRing,         ///< from `slot` on `host`; with the ring and the other side's bell
  kRingOpened,   ///< to `slot` on `host`; with the other side's bell
  kGone,         ///< `slot` is no more (or never was)
  kListens,      ///< to the broker: a program of `host` listens on a TCP port
  kBindPort,     ///< to the broker: connection manager; `port` 0: any. Answered by the same kind
  kListenPort,   ///< to the broker: requests for the port are welcome from now on
  kFreePort,     ///< to the broker
  kConnect,      ///< `to` names host and port; the broker adds the listener
  kReply,        ///< the rest goes to `slot` and is for its identifier `to_id`
  kReject,
  kReady,
  kDisconnect,
};

struct Message {
  MessageKind kind{};
  std::uint32_t slot = 0;  ///< towards the broker: whom it is for; from the broker: whose it is
  std::uint32_t host = 0;
  std::int32_t error = 0;
  std::uint32_t network = 0;
  DeviceCard card;
  // The connection manager's part.
  std::uint64_t from_id = 0, to_id = 0, cookie = 0;
  std::uint32_t to_address = 0, from_address = 0;
  std::uint16_t port = 0, from_port = 0;
  std::uint32_t port_space = 0;
  std::uint32_t qp_number = 0, qp_key = 0;
  std::uint8_t responder_resources = 0, initiator_depth = 0, retry_count = 0, rnr_retry_count = 0;
  std::uint8_t flow_control = 0, has_srq = 0, private_bytes = 0;
  std::array<std::uint8_t, 255> private_data{};
};

/// Descriptors that came with a message; who takes one sets it to -1, the rest are closed.
struct Descriptors {
  std::array<int, 2> fds{-1, -1};
  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors();
  int take(std::size_t i);
};

/// False when the other side is gone.
bool send_message(int socket, const Message& message, int first = -1, int second = -1);
bool receive_message(int socket, Message& message, Descriptors& descriptors);

/// Sockets of the abstract namespace vanish with their owner; -1 and errno.
int listen_at(const std::string& name);
int connect_to(const std::string& name);

}  // namespace greynic::lab
