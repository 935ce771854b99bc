#pragma once

/// What two brokers say to each other. Records are of fixed length and little-endian; readers check
/// everything that does not need the state of a connection. docs/broker/protocol.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "greynic/broker/device.h"

namespace greynic::broker {

/// A message of control, sent in band on the lane of its connection.
struct Control {
  enum class Kind : std::uint8_t {
    kOpen = 1,   ///< from, port, ring, exposed, transport
    kAccept,     ///< to, from, ring, exposed
    kRefuse,     ///< to, value: errno
    kConsumed,   ///< to, value: bytes of the stream taken by the application so far
    kFinish,     ///< to: no more bytes come
    kReset,      ///< to, value: errno
    kResetDone,  ///< to: nothing more will be written
    kOffer,      ///< to, ring address and key: bytes of the stream to be READ
    kTaken,      ///< to, value: bytes that were READ
    kCredit,     ///< value: receives used and posted again so far; port, from: loads of
                 ///< processor and memory, per mille
  };
  Kind kind = Kind::kCredit;
  Transport transport = Transport::kRC;
  std::uint16_t port = 0;
  std::uint32_t to = 0, from = 0;  ///< virtual QPNs: of the reader, of the writer
  std::uint64_t value = 0;
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t key = 0;
  } ring, exposed;
};
inline constexpr std::size_t kControlBytes = 64;
void encode(const Control& control, std::span<std::byte, kControlBytes> out);
/// Empty: no record, or one with a range that wraps.
[[nodiscard]] std::optional<Control> decode(std::span<const std::byte> record);

/// Before each payload where the device has no immediate data.
struct Prefix {
  std::uint32_t to = 0;
  std::uint32_t written = 0;  ///< not 0: so many bytes were WRITTEN before, no payload follows
};
inline constexpr std::size_t kPrefixBytes = 8;

/// Out of band, over the connection by which two brokers know each other: brings a lane up.
struct LaneCall {
  enum class Kind : std::uint8_t {
    kDown = 1,  ///< the old QP is drained: this is the new one, and what the old one received
    kReady,     ///< the new QP takes requests
  };
  Kind kind = Kind::kDown;
  std::uint16_t lane = 0, lane_count = 0;
  std::uint32_t epoch = 0;
  std::uint32_t credits = 0;   ///< receives that the writer keeps for the reader
  std::uint64_t received = 0;  ///< messages on this lane, over all epochs
  QpAddress address{};
};
inline constexpr std::size_t kLaneCallBytes = 56;
[[nodiscard]] std::vector<std::byte> encode(const LaneCall& call);
[[nodiscard]] std::optional<LaneCall> decode_lane_call(std::span<const std::byte> bytes);

}  // namespace greynic::broker
