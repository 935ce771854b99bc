#pragma once

/// The words of RDMA verbs that every room shares: what an operation, a transport and a direction
/// are. Their names are the levels of the factors `operation`, `transport` and `direction`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace greynic {

enum class Operation : std::uint8_t { kSend, kWrite, kRead, kAtomic };
inline constexpr std::size_t kOperationCount = 4;
inline constexpr std::array<std::string_view, kOperationCount> kOperationNames = {"SEND", "WRITE",
                                                                                  "READ", "ATOMIC"};

enum class Transport : std::uint8_t { kRC, kUC, kUD, kXRC };
inline constexpr std::size_t kTransportCount = 4;
inline constexpr std::array<std::string_view, kTransportCount> kTransportNames = {"RC", "UC", "UD",
                                                                                  "XRC"};

enum class Direction : std::uint8_t { kUnidirectional, kBidirectional, kLoopback };

[[nodiscard]] constexpr std::string_view to_string(Operation operation) {
  return kOperationNames[static_cast<std::size_t>(operation)];
}
[[nodiscard]] constexpr std::string_view to_string(Transport transport) {
  return kTransportNames[static_cast<std::size_t>(transport)];
}

/// Empty: there is no such operation, or transport.
[[nodiscard]] std::optional<Operation> operation_named(std::string_view name);
[[nodiscard]] std::optional<Transport> transport_named(std::string_view name);

/// Nothing is lost or reordered, and READ and atomics are defined.
[[nodiscard]] constexpr bool is_reliable(Transport transport) {
  return transport == Transport::kRC || transport == Transport::kXRC;
}

}  // namespace greynic
