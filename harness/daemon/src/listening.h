#pragma once

/// Sockets that listen, and addresses as text.

#include <sys/socket.h>

#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::daemon {

struct Listening {
  std::vector<int> sockets;
  std::string address;  ///< as asked for, with the port that was given
};

/// One socket for each address of "HOST:PORT", all at one port. Errors as Door::open.
[[nodiscard]] Result<Listening> listen_at(const std::string& listen);

/// "10.0.0.7:41234", "[fe80::7]:41234", or without the port. An IPv4 address that came by way of
/// IPv6 is told as IPv4; the zone of a link-local one is left out.
[[nodiscard]] std::string text_of(const sockaddr_storage& address, bool with_port);

}  // namespace greynic::daemon
