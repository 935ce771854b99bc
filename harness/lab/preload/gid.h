#pragma once

/// Addresses of RoCE: a link-local GID and one made of the IPv4 address, each for both versions.

#include <cstdint>
#include <cstring>

#include "preload/verbs_headers.h"
#include "protocol/messages.h"

namespace greynic::lab {

using Gid = ::ibv_gid;

inline constexpr int kGidCount = 4;

inline Gid local_gid(std::uint32_t network, std::uint32_t host) {
  Gid gid{};
  gid.raw[0] = 0xFE;
  gid.raw[1] = 0x80;
  gid.raw[8] = 0x02;
  gid.raw[11] = 0xFF;
  gid.raw[12] = 0xFE;
  gid.raw[13] = static_cast<std::uint8_t>(network);
  gid.raw[14] = static_cast<std::uint8_t>((host + 1) >> 8);
  gid.raw[15] = static_cast<std::uint8_t>(host + 1);
  return gid;
}

inline Gid address_gid(std::uint32_t network, std::uint32_t host) {
  Gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  const std::uint32_t address = address_of(network, host);
  for (int i = 0; i < 4; ++i) gid.raw[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
  return gid;
}

/// The host of this lab that has the address; -1 for none.
std::int64_t host_of(const ibv_ah_attr& address, std::uint32_t network);
inline std::int64_t host_of(const Gid& gid, std::uint32_t network) {
  const std::int64_t host = (gid.raw[14] << 8 | gid.raw[15]) - 1;
  if (host < 0) return -1;
  for (const Gid& own : {local_gid(network, static_cast<std::uint32_t>(host)),
                         address_gid(network, static_cast<std::uint32_t>(host))}) {
    if (std::memcmp(own.raw, gid.raw, sizeof own.raw) == 0) return host;
  }
  return -1;
}

}  // namespace greynic::lab
