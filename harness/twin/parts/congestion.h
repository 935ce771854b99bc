#pragma once

/// What keeps a sender from flooding a slower receiver: priority flow control, which stops a whole
/// port, and DCQCN, which slows down single QPs before that. DCQCN: a switch marks packets while
/// its queue is long (ECN), the receiver tells the sender (CNP), and the sender cuts the QP's rate
/// and then raises it again by a timer and by a count of bytes.
///
/// Source: Y. Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015;
/// parameters by the names of the RNIC's firmware in configs/rnics.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "greynic/statistics/random.h"
#include "parts/fifo.h"
#include "parts/stage.h"

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
              (backlog >= limits_.ecn_high || random.uniform() < ecn_share_at(backlog));
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
  [[nodiscard]] double ecn_share_at(Time backlog) const {
    return limits_.ecn_share * (backlog - limits_.ecn_low) / (limits_.ecn_high - limits_.ecn_low);
  }

  bool present_ = false;
  double stretch_ = 1;
  PortLimits limits_;
  std::vector<Ingress> ingresses_;
  Serial queue_;
  bool marked_ = false, dropped_ = false;
  std::uint64_t pause_count_ = 0;
};

/// DCQCN's constants.
struct DcqcnRule {
  double line_gbps = 0;  ///< a QP that is not limited
  double minimum_gbps = 0;
  double gain = 0;            ///< g: weight of the newest congestion in alpha; 0: the RNIC has none
  Time alpha_ns = 0;          ///< alpha decays once in so long without a CNP
  Time increase_ns = 0;       ///< the rate is raised once in so long
  double increase_bytes = 0;  ///< and once in so many bytes
  std::uint32_t recovery_steps = 0;  ///< F: raises that go halfway back, before the target rises
  double additive_gbps = 0, hyper_gbps = 0;  ///< what the target rises by
  Time cnp_ns = 0;                           ///< the receiver sends one CNP in so long for a QP
};

/// The reaction point: the rate of one QP. Timers are caught up with when they matter.
class RateLimiter {
 public:
  /// The sender is told of congestion at t.
  void cut(const DcqcnRule& rule, Time t) {
    catch_up(rule, t);
    if (!limited_) {
      limited_ = true;
      rate_ = rule.line_gbps;
      alpha_ = 1;
    }
    target_ = rate_;
    rate_ = std::max(rule.minimum_gbps, rate_ * (1 - alpha_ / 2));
    alpha_ += rule.gain * (1 - alpha_);
    alpha_at_ = t + rule.alpha_ns;
    increase_at_ = t + rule.increase_ns;
    bytes_ = 0;
    time_steps_ = byte_steps_ = 0;
  }
  /// So many bytes are put on the wire at t.
  void send(const DcqcnRule& rule, double bytes, Time t) {
    if (!limited_) return;
    catch_up(rule, t);
    for (bytes_ += bytes; limited_ && bytes_ >= rule.increase_bytes;) {
      bytes_ -= rule.increase_bytes;
      ++byte_steps_;
      raise(rule);
    }
    allowed_at_ = std::max(allowed_at_, t) + bytes * 8 / rate(rule);
  }
  /// When the next packet may leave.
  [[nodiscard]] Time allowed_at() const { return limited_ ? allowed_at_ : 0; }
  /// As last caught up with.
  [[nodiscard]] double rate(const DcqcnRule& rule) const {
    return limited_ ? rate_ : rule.line_gbps;
  }
  void catch_up(const DcqcnRule& rule, Time t) {
    if (!limited_) return;
    if (alpha_at_ <= t) {
      const double steps = std::floor((t - alpha_at_) / rule.alpha_ns) + 1;
      alpha_ *= std::pow(1 - rule.gain, steps);
      alpha_at_ += steps * rule.alpha_ns;
    }
    while (limited_ && increase_at_ <= t) {
      increase_at_ += rule.increase_ns;
      ++time_steps_;
      raise(rule);
    }
  }

 private:
  void raise(const DcqcnRule& rule) {
    const auto [fewer, more] = std::minmax(time_steps_, byte_steps_);
    if (fewer > rule.recovery_steps) {
      target_ += rule.hyper_gbps * (fewer - rule.recovery_steps);
    } else if (more > rule.recovery_steps) {
      target_ += rule.additive_gbps;
    }
    target_ = std::min(target_, rule.line_gbps);
    rate_ = (rate_ + target_) / 2;
    if (rate_ > kAllButLine * rule.line_gbps) limited_ = false;
  }

  static constexpr double kAllButLine = 0.999;
  bool limited_ = false;
  std::uint32_t time_steps_ = 0, byte_steps_ = 0;
  double rate_ = 0, target_ = 0;  ///< Gbit/s
  double alpha_ = 1;
  Time alpha_at_ = 0, increase_at_ = 0;
  double bytes_ = 0;
  Time allowed_at_ = 0;
};

}  // namespace greynic::twin
