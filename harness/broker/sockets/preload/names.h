#pragma once

/// What the preloaded library and its relay say to each other, and how a local socket that stands
/// for a TCP socket says so: by its name. A name in the abstract namespace holds the address that
/// the program is to see, so dup, fork and exec need no table.

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace greynic::broker::sockets {

inline constexpr const char* kRelayVariable = "GREYNIC_BROKER_RELAY";
inline constexpr std::string_view kMark = "greynic-tcp/";

/// To the relay, over a socket of packets; a connect brings the far end of a local stream along.
/// The answer is an error number.
struct Wish {
  enum class Kind : std::uint32_t { kListen = 1, kConnect = 2 } kind = Kind::kListen;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> address{};  ///< of a connect; IPv4 as ::ffff:a.b.c.d
  socklen_t name_bytes = 0;
  sockaddr_un name{};  ///< of a listen: where the program accepts
};

/// "\0greynic-tcp/<number>/<address in hexadecimal>".
inline socklen_t make_name(sockaddr_un& into, std::uint64_t number, const void* address,
                           std::size_t bytes) {
  into = {};
  into.sun_family = AF_UNIX;
  char* at = into.sun_path + 1;
  at += std::snprintf(at, 40, "%s%016llx/", kMark.data(), static_cast<unsigned long long>(number));
  const auto* from = static_cast<const unsigned char*>(address);
  for (std::size_t i = 0; i < bytes && i < sizeof(sockaddr_in6); ++i) {
    at += std::snprintf(at, 3, "%02x", from[i]);
  }
  return static_cast<socklen_t>(at - reinterpret_cast<char*>(&into));
}

/// The address in a name, or false when it is none of ours.
inline bool read_name(const sockaddr_un& name, socklen_t name_bytes, sockaddr_storage& into,
                      socklen_t& bytes) {
  const std::size_t head = offsetof(sockaddr_un, sun_path) + 1;
  const std::size_t before = head + kMark.size() + 17;
  if (name.sun_family != AF_UNIX || name_bytes <= before || name.sun_path[0] != '\0' ||
      std::memcmp(name.sun_path + 1, kMark.data(), kMark.size()) != 0) {
    return false;
  }
  into = {};
  const char* at = reinterpret_cast<const char*>(&name) + before;
  bytes = static_cast<socklen_t>((name_bytes - before) / 2);
  if (bytes > sizeof(sockaddr_in6)) return false;
  auto* to = reinterpret_cast<unsigned char*>(&into);
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (socklen_t i = 0; i < bytes; ++i) {
    to[i] = static_cast<unsigned char>(digit(at[2 * i]) * 16 + digit(at[2 * i + 1]));
  }
  return true;
}

}  // namespace greynic::broker::sockets
