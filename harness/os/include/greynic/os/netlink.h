#pragma once

/// Netlink on libmnl: messages of nested attributes, sent in batches, each answered by the kernel
/// with yes or with a reason.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

struct mnl_socket;
struct nlmsghdr;

namespace greynic::os {

using ByteView = std::span<const std::uint8_t>;

/// One request: netlink header, the family's own header, attributes.
class NetlinkMessage {
 public:
  /// `family_header` is copied: a tcmsg, an ifinfomsg.
  template <typename Header>
  NetlinkMessage(std::uint16_t type, std::uint16_t flags, const Header& family_header)
      : NetlinkMessage(type, flags) {
    append(family_header);
  }
  NetlinkMessage(std::uint16_t type, std::uint16_t flags);

  void put(std::uint16_t attribute, ByteView value);
  /// Whole numbers and structs, in the machine's byte order.
  template <typename T>
  void put_value(std::uint16_t attribute, const T& value) {
    put(attribute, {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)});
  }
  void put_text(std::uint16_t attribute, std::string_view text);
  /// What is put until close(mark) lies inside the attribute.
  [[nodiscard]] std::size_t open(std::uint16_t attribute);
  void close(std::size_t mark);
  /// A header inside an attribute that is open.
  template <typename T>
  void append(const T& header) {
    append_bytes({reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  }

  [[nodiscard]] ByteView bytes() const { return bytes_; }

 private:
  friend class NetlinkSocket;
  nlmsghdr* header();
  /// The header, with so many bytes of buffer behind the message.
  nlmsghdr* with_room_for(std::size_t bytes);
  void append_bytes(ByteView bytes);
  std::vector<std::uint8_t> bytes_;
};

/// Visits the attributes in a payload.
void each_attribute(ByteView payload,
                    const std::function<void(std::uint16_t type, ByteView value)>& visit);

/// A number of any width up to 8 bytes, in the machine's byte order.
[[nodiscard]] std::uint64_t native_number(ByteView value);

/// A text that ends with a zero byte.
[[nodiscard]] std::string text_of(ByteView value);

/// An answer: its type and what follows the netlink header.
struct NetlinkAnswer {
  std::uint16_t type = 0;
  std::vector<std::uint8_t> payload;
};

class NetlinkSocket {
 public:
  /// In the network namespace of the calling thread, and bound to it for good. `family`: that of
  /// routes, or another NETLINK_*.
  [[nodiscard]] static Result<NetlinkSocket> create(int family = 0);

  /// Sends all in order and waits for every answer. kRefused with the kernel's words (kMissing for
  /// want of a right) for the first that it refused, of which `refused` (when given) gets the
  /// index; those behind it in its batch have been tried too.
  [[nodiscard]] Result<void> send(std::vector<NetlinkMessage>& messages,
                                  std::size_t* refused = nullptr);
  /// Asks about one thing, or lists all of a kind. kRefused with the kernel's words.
  [[nodiscard]] Result<std::vector<NetlinkAnswer>> ask(NetlinkMessage message);
  [[nodiscard]] Result<std::vector<NetlinkAnswer>> dump(NetlinkMessage message);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const;
  };
  explicit NetlinkSocket(std::unique_ptr<mnl_socket, Close> socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Result<void> transmit(ByteView bytes);
  /// Sends a message with more flags and collects what comes up to the kernel's last word.
  [[nodiscard]] Result<std::vector<NetlinkAnswer>> exchange(NetlinkMessage message,
                                                            std::uint16_t flags);
  /// Waits for one datagram.
  [[nodiscard]] Result<ByteView> receive();

  std::unique_ptr<mnl_socket, Close> socket_;
  std::uint32_t sequence_ = 0;
  std::vector<std::uint8_t> buffer_;
};

/// Network interfaces by name.
using LinkNumbers = std::map<std::string, int>;
[[nodiscard]] Result<LinkNumbers> links(NetlinkSocket& socket);

}  // namespace greynic::os
