#pragma once

/// A packet on its way, and the pool that packets come from and go back to.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "greynic/core/verbs_words.h"
#include "greynic/twin/fabric.h"
#include "parts/messages.h"
#include "stages/wire.h"

namespace greynic::twin::fabric {

enum class PacketKind : std::uint8_t {
  kSendData,
  kWriteData,
  kReadRequest,
  kAtomicRequest,
  kReadResponse,
  kAtomicResponse,
  kAck,        ///< `message`: how many the responder has
  kNak,        ///< it misses packet `index` of `message`
  kNotReady,   ///< no receive for `message`
  kErrorNak,   ///< `status` of `message`
  kCongested,  ///< a notification of DCQCN
};
[[nodiscard]] constexpr bool carries_payload(PacketKind kind) {
  return kind == PacketKind::kSendData || kind == PacketKind::kWriteData ||
         kind == PacketKind::kReadResponse || kind == PacketKind::kAtomicResponse;
}
[[nodiscard]] constexpr bool goes_to_requester(PacketKind kind) {
  return kind >= PacketKind::kReadResponse;
}

/// What packets that are alike have in common: it is shared, so that a packet stays short.
struct PacketForm {
  Operation operation = Operation::kSend;
  std::uint32_t payload_bytes = 0;
  std::uint32_t frame_bytes = 0;
  double wire_bytes = 0;             ///< with preamble and gap
  Time wire_ns = 0;                  ///< at the rate of the sender's model
  Time read_ns = 0, request_ns = 0;  ///< of the sender's PCIe link, towards it and from it
  Time write_ns = 0, stored_ns = 0;  ///< at the receiver
  Time full_ns = 0;  ///< what a full packet of its message takes of wire, stages and memory

  void set_wire(double bytes, double link_gbps) {
    wire_bytes = bytes;
    wire_ns = bytes * 8 / link_gbps;
    frame_bytes = static_cast<std::uint32_t>(bytes - header::kPreambleAndGap + 0.5);
  }
};

/// The bytes of a packet. Few of them lie in the packet itself; the room of many stays when the
/// packet is used again.
class Payload {
 public:
  /// Room for so many, with nothing in particular in it.
  std::byte* resize(std::size_t count) {
    size_ = static_cast<std::uint32_t>(count);
    if (count > near_.size()) far_.resize(count);
    return data();
  }
  void assign(const std::byte* from, std::size_t count) {
    if (count > 0) std::memcpy(resize(count), from, count);
  }
  [[nodiscard]] std::byte* data() { return size_ > near_.size() ? far_.data() : near_.data(); }
  [[nodiscard]] const std::byte* data() const {
    return size_ > near_.size() ? far_.data() : near_.data();
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::uint32_t size_ = 0;
  std::vector<std::byte> far_;
  std::array<std::byte, 64> near_;
};

struct PacketHead {
  const PacketForm* form = nullptr;
  PacketKind kind = PacketKind::kAck;
  Transport transport = Transport::kRC;
  WcStatus status = WcStatus::kSuccess;
  bool first = false, last = false;
  bool turn_begins = false;  ///< the receiver needs its QP context
  bool has_immediate = false, invalidates = false;
  bool marked = false;
  bool receives = false;  ///< its message took a receive
  std::uint32_t payload_bytes = 0;
  HostId from = 0, to = 0;
  std::uint32_t from_qp = 0, to_qp = 0;
  std::uint32_t message = 0, index = 0;   ///< of the sender's requests, and within one
  std::uint32_t device = 0, ingress = 0;  ///< where it is: switch, and the port that it came in by
  std::uint32_t psn = 0, rkey = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t bytes = 0;  ///< of the message; of a READ request: asked for
  Time enqueued = 0;
  std::uint32_t depth = 0;  ///< bytes in the queue when it joined
  std::uint32_t immediate = 0;
};

/// Three lines of a CPU's cache.
struct alignas(64) Packet : PacketHead {
  Payload payload;
};
static_assert(sizeof(Packet) == 192);

/// What the payload of an atomic request is.
struct AtomicOperands {
  std::uint64_t compare_add = 0, swap = 0;
};

/// Bytes that a datagram's receive has in front of its payload.
inline constexpr std::uint64_t kRoutingHeader = 40;

class PacketPool {
 public:
  [[nodiscard]] Packet& operator[](std::uint32_t id) { return chunks_[id / kChunk][id % kChunk]; }
  /// A packet as new, but for its payload.
  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) grow();
    const std::uint32_t id = free_.back();
    free_.pop_back();
    static_cast<PacketHead&>((*this)[id]) = {};
    return id;
  }
  void give_back(std::uint32_t id) { free_.push_back(id); }
  [[nodiscard]] std::size_t in_use() const { return chunks_.size() * kChunk - free_.size(); }

 private:
  static constexpr std::uint32_t kChunk = 256;
  void grow() {
    const auto first = static_cast<std::uint32_t>(chunks_.size() * kChunk);
    chunks_.push_back(std::make_unique<Packet[]>(kChunk));
    for (std::uint32_t i = kChunk; i > 0; --i) free_.push_back(first + i - 1);
  }
  std::vector<std::unique_ptr<Packet[]>> chunks_;
  std::vector<std::uint32_t> free_;
};

}  // namespace greynic::twin::fabric
