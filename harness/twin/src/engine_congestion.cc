#include "engine.h"

/// DCQCN between the two RNICs, where a switch port between them is slower than the sender's link.

namespace greynic::twin {
namespace {

constexpr double kCnpBytes = 16;  ///< behind the headers of a RoCEv2 packet

}  // namespace

void Engine::lay_out_congestion() {
  if (w_.server_link_gbps <= 0 || w_.server_link_gbps >= p_.link_rate_gbps) return;
  const double ns_per_kbyte = 8e3 / w_.server_link_gbps;
  port_ = SwitchPort(p_.link_rate_gbps / w_.server_link_gbps,
                     {.ecn_low = p_.port_ecn_low_kbytes * ns_per_kbyte,
                      .ecn_high = p_.port_ecn_high_kbytes * ns_per_kbyte,
                      .ecn_share = p_.port_ecn_share,
                      .pause = p_.port_pause_kbytes * ns_per_kbyte,
                      .resume = p_.port_resume_kbytes * ns_per_kbyte});
  if (!w_.dcqcn) return;
  paces_.resize(streams_.size());
  rule_ = {.line_gbps = p_.link_rate_gbps,
           .minimum_gbps = p_.dcqcn_minimum_gbps,
           .gain = p_.dcqcn_gain,
           .alpha_ns = p_.dcqcn_alpha_us * 1e3,
           .increase_ns = p_.dcqcn_increase_us * 1e3,
           .increase_bytes = p_.dcqcn_increase_bytes,
           .recovery_steps = static_cast<std::uint32_t>(p_.dcqcn_recovery_steps),
           .additive_gbps = p_.dcqcn_additive_gbps,
           .hyper_gbps = p_.dcqcn_hyper_gbps,
           .cnp_ns = p_.dcqcn_cnp_us * 1e3};
}

/// A data packet was put on the wire at t and is through with the receiver's headers at `there`.
void Engine::pace(std::uint32_t id, Time wire_ns, Time t, Time there) {
  paces_[id].limiter.send(rule_, wire_ns * p_.link_rate_gbps / 8, t);
  if (streams_[id].nic == 0 && port_.marked()) events_.push(there, kMarked, id);
}

/// The receiver finds a mark, and tells the sender when it has not done so of late.
void Engine::mark_seen(std::uint32_t id, Time t) {
  const Stream& s = streams_[id];
  ++nics_[s.to].counters.ecn_marked;
  Pace& pace = paces_[id];
  if (t < pace.next_cnp) return;
  pace.next_cnp = t + rule_.cnp_ns;
  ++nics_[s.to].counters.cnps_sent;
  events_.push(send_control(s.to, s.nic, kCnpBytes, t), kNotified, id);
}

void Engine::notified(std::uint32_t id, Time t) {
  ++nics_[streams_[id].nic].counters.cnps_handled;
  paces_[id].limiter.cut(rule_, t);
}

/// Is the stream ahead of its rate? Then it joins its unit's ring later.
bool Engine::hold_back(std::uint32_t id, Time t) {
  if (paces_.empty()) return false;
  Pace& pace = paces_[id];
  const Time allowed = pace.limiter.allowed_at();
  if (allowed <= t) return false;
  if (!pace.held) events_.push(allowed, kReleased, id);
  pace.held = true;
  return true;
}

void Engine::released(std::uint32_t id, Time t) {
  paces_[id].held = false;
  activate(id, t);
}

}  // namespace greynic::twin
