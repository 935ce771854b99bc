#pragma once

/// Finds connections that open calls and take them back faster than gRPC lets go of them (HTTP/2 rapid
/// reset). gRPC's limit of calls at once counts only those that their caller still wants, so one
/// connection could fill the memory with others. gRPC's own books (channelz) say how many calls of each
/// connection it still holds.

#include <string>
#include <vector>

namespace greynic::agent {

/// Far more than the eight at once that a server takes, and some megabytes.
inline constexpr long kMostCallsHeld = 256;

struct HeldCalls {
  bool too_many = false;  ///< a server holds more than kMostCallsHeld
  /// Connections with more than that, as daemon::Door names them. What was cut is no more among
  /// them; its calls may be held for some time.
  std::vector<std::string> overfull;
};

/// Of all servers of this process. While none holds too many it costs a look at each server.
[[nodiscard]] HeldCalls held_calls();

}  // namespace greynic::agent
