#pragma once

/// READs over RDMA: what each end of a session holds. The agent's end exposes arenas to one caller
/// through a protection domain of that caller, so a key that is guessed opens nothing else. The
/// collector's end READs them into a buffer of its own; the agent's processor takes no part.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "greynic/verbs/resources.h"
#include "greynic/zero/source.h"

namespace greynic::remote {

/// What the other end must know of a queue pair, and the MTU that its port can take.
struct RdmaEnd {
  verbs::RemoteEnd at;
  std::uint32_t mtu_bytes = 1024;
};

/// The queue pair of one end.
class RdmaQueue {
 public:
  /// Errors: kMissing (no address to be reached at), kRefused (the device gives no more).
  [[nodiscard]] static Result<RdmaQueue> create(const verbs::Device& device,
                                                std::uint32_t send_depth);
  [[nodiscard]] RdmaEnd end() const;
  /// kBadInput: the end is none; kRefused: the device does not connect to it.
  [[nodiscard]] Result<void> connect(const RdmaEnd& remote);
  /// Back to where it can be connected to another end; what was under way is forgotten.
  [[nodiscard]] Result<void> reset();
  [[nodiscard]] const verbs::ProtectionDomain& pd() const { return pd_; }
  [[nodiscard]] verbs::CompletionQueue& cq() { return cq_; }
  [[nodiscard]] verbs::CompletionChannel& channel() { return channel_; }
  [[nodiscard]] verbs::QueuePair& qp() { return qp_; }

 private:
  RdmaQueue(verbs::ProtectionDomain pd, verbs::CompletionChannel channel, verbs::CompletionQueue cq,
            verbs::QueuePair qp)
      : pd_(std::move(pd)), channel_(std::move(channel)), cq_(std::move(cq)), qp_(std::move(qp)) {}

  verbs::ProtectionDomain pd_;
  verbs::CompletionChannel channel_;
  verbs::CompletionQueue cq_;
  verbs::QueuePair qp_;
  RdmaEnd own_;
};

/// Memory that a caller may READ until this is destroyed.
struct Exposed {
  verbs::MemoryRegion region;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
[[nodiscard]] Result<Exposed> expose(const RdmaQueue& queue, std::span<const std::byte> memory);

/// Where exposed memory lies, as its READer knows it.
struct Place {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint64_t bytes = 0;
};

class RdmaReader {
 public:
  static constexpr std::uint32_t kPosted = 64;  ///< READs at once, the depth of its queue
  RdmaReader(RdmaQueue queue, std::chrono::nanoseconds patience)
      : queue_(std::move(queue)), patience_(patience) {}

  /// As zero::Source::read. A READ waits for the one before it (a fence): the device at the other end
  /// may fetch what both ask for in any order. After an error the queue pair is useless: connect anew.
  /// Errors: kBadInput (beyond the memory), kIo (no answer in time, or the key opens nothing).
  [[nodiscard]] Result<void> read(const Place& place, std::span<const zero::Piece> pieces);
  [[nodiscard]] RdmaQueue& queue() { return queue_; }
  /// Ready for another end, or for the same once more after an error.
  [[nodiscard]] Result<void> begin_anew(std::chrono::nanoseconds patience);

 private:
  Result<void> make_room(std::size_t bytes);
  Result<void> read_some(const Place& place, std::span<const zero::Piece> pieces);
  Result<void> wait();

  std::optional<verbs::MemoryRegion> buffer_;
  RdmaQueue queue_;  // after the buffer, to end before it: a late answer finds no queue pair
  std::chrono::nanoseconds patience_;
  bool broken_ = false;
};

/// The device, opened once for all links of this process.
[[nodiscard]] Result<std::shared_ptr<const verbs::Device>> shared_device(const std::string& name);

}  // namespace greynic::remote
