#pragma once

/// Snapshots of microbursts: which packets took part, decided packet by packet, where they queue.
///
/// The caller says when a packet joins and leaves a queue, and how deep the queue is then. Marked
/// packets leave a courier record in a ring, as on a switch; what does not fit is counted as lost.
/// The rule itself is in snapshot_rule.h, which the eBPF probe runs too. Here are the queues, the
/// records and the ring around it.
///
/// Nothing is allocated and no clock is read: the caller brings memory and times. Not safe from two
/// threads; a queue's lock, or one thread, orders the calls.

#include <algorithm>
#include <cstdint>
#include <span>

#include "greynic/burst/flow_key.h"
#include "greynic/burst/snapshot_rule.h"

namespace greynic::burst {

/// What a marked packet leaves behind. Numbers that do not fit saturate.
struct CourierRecord {
  std::uint64_t dequeued_ns = 0;
  std::uint64_t stay_bytes_run = 0;    ///< 40 bits of nanoseconds, 20 of bytes, 4 of run()
  std::uint32_t depth_at_enqueue = 0;  ///< bytes, this packet among them
  std::uint32_t depth_at_dequeue = 0;  ///< bytes that stay
  std::uint16_t queue = 0;
  FlowKey flow;

  [[nodiscard]] std::uint64_t stay_ns() const { return stay_bytes_run >> 24; }
  [[nodiscard]] std::uint64_t enqueued_ns() const { return dequeued_ns - stay_ns(); }
  [[nodiscard]] std::uint32_t bytes() const { return stay_bytes_run >> 4 & 0xfffff; }
  /// The number of its burst in its queue, modulo 16.
  [[nodiscard]] std::uint8_t run() const { return stay_bytes_run & 0xf; }
};
static_assert(sizeof(CourierRecord) == 64);

/// `run`: of QueueState.
[[nodiscard]] inline CourierRecord courier_record(std::size_t queue, std::uint64_t run,
                                                  const FlowKey& flow, std::uint64_t bytes,
                                                  std::uint64_t enqueued, std::uint64_t dequeued,
                                                  std::uint64_t depth_at_enqueue,
                                                  std::uint64_t depth_at_dequeue) {
  const auto fit = [](std::uint64_t value, std::uint64_t most) { return std::min(value, most); };
  const std::uint64_t stay = dequeued > enqueued ? dequeued - enqueued : 0;
  return {
      .dequeued_ns = dequeued,
      .stay_bytes_run = fit(stay, (1ULL << 40) - 1) << 24 | fit(bytes, 0xfffff) << 4 | (run & 0xf),
      .depth_at_enqueue = static_cast<std::uint32_t>(fit(depth_at_enqueue, UINT32_MAX)),
      .depth_at_dequeue = static_cast<std::uint32_t>(fit(depth_at_dequeue, UINT32_MAX)),
      .queue = static_cast<std::uint16_t>(queue),
      .flow = flow};
}

/// A record as a switch exports it, for IPv4: addresses 8 bytes, ports 4, protocol 1, times 2 x 6,
/// depths 2 x 2 in cells of 80 bytes; all in network order. Where 29 bytes go is our reading: the
/// paper gives only their number.
inline constexpr std::size_t kPackedBytes = 29;
inline constexpr std::uint32_t kCellBytes = 80;
inline void pack(const CourierRecord& record, std::span<std::uint8_t, kPackedBytes> out) {
  std::size_t at = 0;
  const auto put = [&](std::uint64_t value, int bytes) {
    while (bytes-- > 0) out[at++] = static_cast<std::uint8_t>(value >> (8 * bytes));
  };
  const auto cells = [](std::uint32_t bytes) {
    return std::min<std::uint64_t>((std::uint64_t{bytes} + kCellBytes - 1) / kCellBytes, 0xffff);
  };
  for (std::size_t i = 0; i < 4; ++i) out[at++] = record.flow.source[i];
  for (std::size_t i = 0; i < 4; ++i) out[at++] = record.flow.destination[i];
  put(record.flow.source_port, 2);
  put(record.flow.destination_port, 2);
  put(record.flow.protocol, 1);
  put(record.enqueued_ns(), 6);
  put(record.dequeued_ns, 6);
  put(cells(record.depth_at_enqueue), 2);
  put(cells(record.depth_at_dequeue), 2);
}

/// A ring over memory of the caller. Full: the new record is lost and counted, as on a switch whose
/// mirror port is behind.
class RecordRing {
 public:
  explicit RecordRing(std::span<CourierRecord> storage) : storage_(storage) {}
  bool push(const CourierRecord& record) {
    if (count_ == storage_.size()) {
      ++lost_;
      return false;
    }
    const std::size_t place = first_ + count_++;
    storage_[place < storage_.size() ? place : place - storage_.size()] = record;
    most_ = std::max(most_, count_);
    return true;
  }
  bool pop(CourierRecord& record) {
    if (count_ == 0) return false;
    record = storage_[first_];
    first_ = first_ + 1 == storage_.size() ? 0 : first_ + 1;
    --count_;
    return true;
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t most() const { return most_; }  ///< that it ever held
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  std::span<CourierRecord> storage_;
  std::size_t first_ = 0, count_ = 0, most_ = 0;
  std::uint64_t lost_ = 0;
};

/// Of one queue. Only `threshold_bytes` is for the caller to set, at any time.
struct QueueState {
  std::uint64_t threshold_bytes = 0;
  SnapshotRule rule{};
  std::uint64_t seen = 0, marked = 0;
  std::uint64_t latest_ns = 0, clock_ran_back = 0;  ///< and how often a time was before it
  std::uint8_t run = 0;                             ///< bursts so far
  bool in_run = false;  ///< the packet that left last was marked, and others stayed
};

enum class Mode : std::uint8_t {
  kArmedAtEnqueue,  ///< exact
  kDequeueOnly,     ///< the switch's: on_enqueue changes nothing
};

class Snapshot {
 public:
  Snapshot(std::span<QueueState> queues, std::span<CourierRecord> ring,
           Mode mode = Mode::kArmedAtEnqueue)
      : queues_(queues), ring_(ring), mode_(mode) {}

  /// A packet joins; `depth` has its bytes among them. True: it takes part for sure.
  bool on_enqueue(std::size_t queue, std::uint64_t bytes, std::uint64_t depth, std::uint64_t now) {
    if (mode_ == Mode::kDequeueOnly) return false;
    QueueState& state = queues_[queue];
    watch_clock(state, now);
    return snapshot_enqueue(&state.rule, state.threshold_bytes, bytes, depth) != 0;
  }

  /// A packet leaves; `depth` is what stays. True: it took part; keep() then writes its record.
  bool on_dequeue(std::size_t queue, std::uint64_t bytes, std::uint64_t depth, std::uint64_t now) {
    QueueState& state = queues_[queue];
    ++state.seen;
    watch_clock(state, now);
    const bool marked = snapshot_dequeue(&state.rule, state.threshold_bytes, bytes, depth) != 0;
    if (marked && !state.in_run) ++state.run;
    state.in_run = marked && depth > 0;
    state.marked += marked ? 1 : 0;
    return marked;
  }

  /// The record of a packet that was marked just now. False: the ring is full.
  bool keep(std::size_t queue, const FlowKey& flow, std::uint64_t bytes, std::uint64_t enqueued,
            std::uint64_t dequeued, std::uint64_t depth_at_enqueue,
            std::uint64_t depth_at_dequeue) {
    return ring_.push(courier_record(queue, queues_[queue].run, flow, bytes, enqueued, dequeued,
                                     depth_at_enqueue, depth_at_dequeue));
  }

  [[nodiscard]] RecordRing& ring() { return ring_; }
  [[nodiscard]] std::span<QueueState> queues() { return queues_; }

 private:
  static void watch_clock(QueueState& state, std::uint64_t now) {
    if (now < state.latest_ns) ++state.clock_ran_back;
    state.latest_ns = std::max(state.latest_ns, now);
  }

  std::span<QueueState> queues_;
  RecordRing ring_;
  Mode mode_;
};

}  // namespace greynic::burst
