#pragma once

/// What the broker needs of an RDMA device: memory, reliable QPs that share one receive queue, QPs
/// over UC and UD with receives of their own, and posting. Two backends implement it: the twin's fabric and libibverbs. Completions are handed to
/// the core by whoever polls; a device knows neither threads nor callbacks of the core.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"

namespace greynic::broker {

/// A QP by the number that the device gives it; never used again while the core holds it.
using QpNumber = std::uint32_t;

/// How a peer reaches a QP; only the device reads it.
using QpAddress = std::array<std::uint8_t, 32>;

/// What the RNIC may do with memory: all, or take from it only.
enum class Access : std::uint8_t { kAll, kRead };

struct Memory {
  std::uint64_t address = 0;
  std::uint32_t local_key = 0, remote_key = 0;
};

enum class Verb : std::uint8_t { kSend, kWrite, kRead };
inline constexpr std::size_t kVerbCount = 3;

struct Piece {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;
};

/// One work request. All are signalled but those that say otherwise.
struct Work {
  std::uint64_t id = 0;
  Verb verb = Verb::kSend;
  std::array<Piece, 2> pieces{};
  std::uint8_t piece_count = 1;
  bool has_immediate = false;
  bool signaled = true;
  std::uint32_t immediate = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
};

enum class Status : std::uint8_t {
  kDone,
  kFlushed,      ///< the QP was in error already: this request is innocent
  kUnreachable,  ///< retries exceeded: the other end or the way to it is gone
  kGuilty,       ///< this request was wrong: a range, a key, a length
};

struct Completion {
  std::uint64_t id = 0;
  QpNumber qp = 0;
  Status status = Status::kDone;
  bool is_receive = false;
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;  ///< of a receive
  bool written = false;  ///< a receive that a WRITE with immediate data took: bytes lie elsewhere
};

/// What a message over UD begins with where it arrives.
inline constexpr std::uint32_t kRoutingHeaderBytes = 40;

class Device {
 public:
  virtual ~Device() = default;
  /// False on iWARP: the core then puts a header before each payload.
  [[nodiscard]] virtual bool has_immediate() const = 0;
  /// For the RNIC here and for that of a peer. The memory stays the caller's.
  [[nodiscard]] virtual Result<Memory> register_memory(std::span<std::byte> memory,
                                                       Access access) = 0;
  virtual void deregister(const Memory& memory) = 0;
  /// Longest packet; a message over UD is one.
  [[nodiscard]] virtual std::uint32_t mtu_bytes() const = 0;
  /// A QP whose completions reach the core. RC takes receives from the one shared queue; UC and UD
  /// have `receive_depth` of their own, so that what they lose costs nobody else a receive.
  [[nodiscard]] virtual Result<QpNumber> create_qp(Transport transport, std::uint32_t send_depth,
                                                   std::uint32_t receive_depth) = 0;
  [[nodiscard]] virtual QpAddress address_of(QpNumber qp) const = 0;
  /// To ready-to-send. kBadInput for an address that is none: it came from a peer.
  [[nodiscard]] virtual Result<void> connect(QpNumber qp, const QpAddress& peer) = 0;
  /// All that is posted comes back, flushed. Once no completion of this QP can come any more, the
  /// device's owner calls Core::on_drained: an acknowledged message must not be missed, and only
  /// the backend knows how long the RNIC takes to show the last one.
  virtual void to_error(QpNumber qp) = 0;
  virtual void destroy(QpNumber qp) = 0;
  /// In order; how many were taken. Fewer than given: the QP is in error or full.
  virtual std::size_t post(QpNumber qp, std::span<const Work> list) = 0;
  /// To the shared receive queue, or to that of a QP over UC or UD.
  virtual std::size_t post_receives(std::span<const std::uint64_t> ids,
                                    std::span<const Piece> buffers, QpNumber qp = 0) = 0;
};

}  // namespace greynic::broker
