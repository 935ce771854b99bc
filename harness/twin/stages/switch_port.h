#pragma once

/// The port of a switch, and the pauses by which priority flow control (PFC) keeps a sender from
/// flooding a receiver: it stops a whole port.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "greynic/statistics/random.h"
#include "stages/fifo.h"
#include "stages/stage.h"

namespace greynic::twin {

/// A receive buffer of so many packets. When it is full, its port tells the partner to pause, and
/// to go on when no more than `resume` are left. Packets leave in order.
class PauseBuffer {
 public:
  PauseBuffer() = default;
  /// 0 < resume < size.
  PauseBuffer(std::size_t size, std::size_t resume) : leave_(size, 0.0), drained_(size - resume) {}
  /// When a packet that could be sent at t may be sent.
  [[nodiscard]] Time admit(Time t) {
    if (leave_[at_] <= t) return t;
    ++pause_count_;
    std::size_t last = at_ + drained_ - 1;
    if (last >= leave_.size()) last -= leave_.size();
    return leave_[last];
  }
  /// Call after admit, with the time at which the same packet leaves.
  void enter(Time leave) {
    leave_[at_] = leave;
    if (++at_ == leave_.size()) at_ = 0;
  }
  [[nodiscard]] std::uint64_t pause_count() const { return pause_count_; }
  /// What admit looks at next.
  [[nodiscard]] const Time* next() const { return leave_.data() + at_; }

 private:
  std::vector<Time> leave_;
  std::size_t at_ = 0;
  std::size_t drained_ = 1;
  std::uint64_t pause_count_ = 0;
};

/// Thresholds of a switch port, as times that its queue takes to drain.
struct PortLimits {
  Time ecn_low = 0, ecn_high = 0;  ///< marking begins; every packet is marked
  double ecn_share = 0;            ///< of packets that are marked just below ecn_high
  bool lossless = true;            ///< PFC: senders are told to stop
  Time pause = 0, resume = 0;      ///< of one sender's packets: it is told to stop; to go on
  Time buffer = kNever;            ///< of all packets: without PFC, what comes on top is dropped

  /// How likely a packet is marked that finds so much in the queue.
  [[nodiscard]] double mark_share(Time backlog) const {
    if (backlog <= ecn_low) return 0;
    if (backlog >= ecn_high) return 1;
    return ecn_share * (backlog - ecn_low) / (ecn_high - ecn_low);
  }
};

/// The port of the switch towards a receiver that several senders have, or whose link is slower
/// than the sender's: one queue, first come first served. Packets are counted against the port that
/// they came in by, so that PFC stops who fills the buffer, and all together against the buffer.
class SwitchPort {
 public:
  SwitchPort() = default;
  /// `stretch`: how many times longer a packet takes on this link than on the sender's. Senders go
  /// by numbers below `sender_bound`.
  SwitchPort(double stretch, const PortLimits& limits, std::size_t sender_bound)
      : present_(true), stretch_(stretch), limits_(limits), ingresses_(sender_bound) {}
  [[nodiscard]] bool present() const { return present_; }
  [[nodiscard]] double stretch() const { return stretch_; }

  /// When a packet that could be sent at t may be sent. What is on the wire when the sender is told
  /// to stop fits the headroom of the switch.
  [[nodiscard]] Time admit(std::size_t sender, Time t) {
    if (!limits_.lossless) return t;
    Ingress& ingress = ingresses_[sender];
    if (t < ingress.paused_until) return ingress.paused_until;
    while (!ingress.packets.empty() && ingress.packets.front().leaves <= t) {
      ingress.waiting -= ingress.packets.pop().takes;
    }
    if (ingress.waiting <= limits_.pause) return t;
    ++pause_count_;
    while (ingress.waiting > limits_.resume && !ingress.packets.empty()) {
      const Packet packet = ingress.packets.pop();
      ingress.waiting -= packet.takes;
      ingress.paused_until = packet.leaves;
    }
    return ingress.paused_until;
  }
  /// Arrives at t, whole; returns when it has left the port. `wire_ns` is what it took on the
  /// sender's link. What must not get lost is not dropped.
  Time pass(std::size_t sender, Time t, Time wire_ns, bool may_drop, statistics::Random& random) {
    const Time backlog = queue_.free() - t;
    const Time takes = wire_ns * stretch_;
    dropped_ = may_drop && !limits_.lossless && backlog + takes > limits_.buffer;
    marked_ = !dropped_ && backlog > limits_.ecn_low &&
              (backlog >= limits_.ecn_high || random.uniform() < limits_.mark_share(backlog));
    if (dropped_) return t;
    const Time leaves = queue_.pass(t, takes);
    if (limits_.lossless) {
      ingresses_[sender].packets.push({leaves, takes});
      ingresses_[sender].waiting += takes;
    }
    return leaves;
  }
  /// When all that is in the queue will have left.
  [[nodiscard]] Time free() const { return queue_.free(); }
  /// The receiver pauses the port.
  void hold_until(Time t) { queue_.hold_until(t); }
  /// Was the packet that came last marked?
  [[nodiscard]] bool marked() const { return marked_; }
  /// Did it find the buffer full?
  [[nodiscard]] bool dropped() const { return dropped_; }
  [[nodiscard]] std::uint64_t pause_count() const { return pause_count_; }

 private:
  struct Packet {
    Time leaves, takes;
  };
  struct Ingress {
    Fifo<Packet> packets;  ///< in the queue
    Time waiting = 0;      ///< how long they take
    Time paused_until = 0;
  };

  bool present_ = false;
  double stretch_ = 1;
  PortLimits limits_;
  std::vector<Ingress> ingresses_;
  Serial queue_;
  bool marked_ = false, dropped_ = false;
  std::uint64_t pause_count_ = 0;
};

}  // namespace greynic::twin
