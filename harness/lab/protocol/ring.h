#pragma once

/// A queue of packets in memory that two processes share: one writes, one reads. What the writer
/// has not published does not exist for the reader, so a process that is killed in the middle
/// leaves a queue that is whole.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace greynic::lab {

enum class PacketKind : std::uint16_t {
  kPad,  ///< the rest of the buffer is unused
  kSend,
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  // Answers.
  kAck,
  kNak,       ///< `code` is the requester's completion status
  kNotReady,  ///< no receive is posted; `code` is the RNR timer
  kDropped,   ///< nobody took it: what a network tells by silence
  kReadAnswer,
  kAtomicAnswer,
};

namespace packet_flag {
inline constexpr std::uint16_t kLast = 1, kImmediate = 2, kInvalidate = 4, kSolicited = 8;
}

/// A message travels as packets of at most kChunkBytes; all but the first carry an offset.
struct alignas(64) Packet {
  std::uint32_t bytes = 0;  ///< of packet and payload in the ring
  PacketKind kind{};
  std::uint16_t flags = 0;
  std::uint32_t to_qp = 0, from_qp = 0;
  std::uint32_t to_host = 0, from_host = 0;
  std::uint32_t message = 0;  ///< number of the message on its QP
  std::uint32_t payload = 0;  ///< bytes behind this header
  std::uint64_t offset = 0;   ///< of the payload in the message
  std::uint64_t length = 0;   ///< of the message
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t immediate = 0;  ///< or the key to invalidate
  std::uint64_t compare_add = 0, swap = 0;
  std::uint32_t qp_key = 0;  ///< of datagrams
  std::uint32_t srq = 0;     ///< XRC
  std::uint32_t code = 0;
  std::uint8_t transport = 0;  ///< ibv_qp_type of the sender
  std::uint8_t service_level = 0;

  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] const std::byte* data() const {
    return reinterpret_cast<const std::byte*>(this + 1);
  }
};
static_assert(sizeof(Packet) == 128);

inline constexpr std::uint32_t kChunkBytes = 16 << 10;
inline constexpr int kTurnPackets = 16;  ///< that a QP may send before others

struct Ring {
  static constexpr std::uint64_t kBytes = 512 << 10;

  alignas(64) std::atomic<std::uint64_t> tail{0};  ///< the writer's
  std::atomic<std::uint32_t> writer_waits{0};
  alignas(64) std::atomic<std::uint64_t> head{0};  ///< the reader's
  std::atomic<std::uint32_t> reader_sleeps{1};
  alignas(64) std::byte buffer[kBytes];

  /// Room for a packet with so much payload; null when there is none.
  Packet* reserve(std::uint32_t payload) {
    const std::uint32_t need = (sizeof(Packet) + payload + 63) & ~63U;
    const std::uint64_t at = tail.load(std::memory_order_relaxed);
    const std::uint64_t place = at % kBytes;
    const std::uint64_t pad = place + need > kBytes ? kBytes - place : 0;
    if (at + pad + need - head.load(std::memory_order_acquire) > kBytes) return nullptr;
    if (pad > 0) {
      auto* const filler = reinterpret_cast<Packet*>(buffer + place);
      filler->bytes = static_cast<std::uint32_t>(pad);
      filler->kind = PacketKind::kPad;
      tail.store(at + pad, std::memory_order_release);
    }
    auto* const packet = reinterpret_cast<Packet*>(buffer + (at + pad) % kBytes);
    *packet = Packet{};
    packet->bytes = need;
    packet->payload = payload;
    return packet;
  }
  void publish(const Packet& packet) {
    tail.store(tail.load(std::memory_order_relaxed) + packet.bytes, std::memory_order_release);
  }

  [[nodiscard]] bool empty() const {
    return head.load(std::memory_order_relaxed) == tail.load(std::memory_order_acquire);
  }
  /// The next packet; null when there is none. A ring that holds no packets, for a program wrote where
  /// it should not, is emptied: what was sent is lost, as on a wire.
  const Packet* front() {
    while (!empty()) {
      const std::uint64_t at = head.load(std::memory_order_relaxed);
      const std::uint64_t place = at % kBytes;
      const auto* const packet = reinterpret_cast<const Packet*>(buffer + place);
      const std::uint64_t there = tail.load(std::memory_order_acquire) - at;
      if (place % 64 != 0 || there > kBytes || !fits(*packet, std::min(there, kBytes - place))) {
        head.store(at + there, std::memory_order_release);
      } else if (packet->kind != PacketKind::kPad) {
        return packet;
      } else {
        pop(*packet);
      }
    }
    return nullptr;
  }
  void pop(const Packet& packet) {
    head.store(head.load(std::memory_order_relaxed) + packet.bytes, std::memory_order_release);
  }

 private:
  /// A pad may be shorter than a packet.
  static bool fits(const Packet& packet, std::uint64_t room) {
    if (packet.bytes == 0 || packet.bytes % 64 != 0 || packet.bytes > room) return false;
    return packet.kind == PacketKind::kPad ||
           std::uint64_t{packet.payload} + sizeof packet <= packet.bytes;
  }
};

}  // namespace greynic::lab
