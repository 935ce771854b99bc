#pragma once

/// DCQCN, which slows single QPs down before a port has to be paused: a switch marks packets while
/// its queue is long (ECN), the receiver tells the sender (CNP), and the sender cuts the QP's rate
/// and then raises it again by a timer and by a count of bytes.
///
/// Source: Y. Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015;
/// parameters by the names of the RNIC's firmware in configs/rnics.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "stages/stage.h"

namespace greynic::twin {

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
