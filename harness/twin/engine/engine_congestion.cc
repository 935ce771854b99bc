#include <algorithm>

#include "engine/engine.h"

/// The switch port towards the server, where several clients meet or whose link is the slower one,
/// and DCQCN, by which RNICs send no more than it carries.

namespace greynic::twin {
namespace {

constexpr double kCnpBytes = 16;  ///< behind the headers of a RoCEv2 packet

}  // namespace

void Engine::lay_out_congestion() {
  const bool narrow = w_.server_link_gbps > 0 && w_.server_link_gbps < p_.link_rate_gbps;
  if (!narrow && w_.sender_count == 1) return;
  const double gbps = narrow ? w_.server_link_gbps : p_.link_rate_gbps;
  const double ns_per_kbyte = 8e3 / gbps;
  // What senders may fill together fits the buffer.
  const double part = std::min(1.0, p_.port_buffer_kbytes / w_.sender_count / p_.port_pause_kbytes);
  port_ = SwitchPort(p_.link_rate_gbps / gbps,
                     {.ecn_low = p_.port_ecn_low_kbytes * ns_per_kbyte,
                      .ecn_high = p_.port_ecn_high_kbytes * ns_per_kbyte,
                      .ecn_share = p_.port_ecn_share,
                      .lossless = w_.pfc,
                      .pause = part * p_.port_pause_kbytes * ns_per_kbyte,
                      .resume = part * p_.port_resume_kbytes * ns_per_kbyte,
                      .buffer = p_.port_buffer_kbytes * ns_per_kbyte},
                     nics_.size());
  if (!w_.pfc && recoveries_.empty()) lay_out_recoveries();
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

/// A data packet was put on the wire at t, and is through with the receiver's headers at `there`
/// unless the port dropped it.
Engine::Fate Engine::fate_behind_port(std::uint32_t id, Fate fate, Time wire_ns, Time t,
                                      Time there) {
  const Stream& s = streams_[id];
  if (!paces_.empty()) {
    paces_[id].limiter.send(rule_, wire_ns * p_.link_rate_gbps / 8, t);
    if (s.to == kServer && port_.marked()) events_.push(there, kMarked, id);
  }
  if (s.to != kServer || s.nic == kServer || !port_.dropped()) return fate;
  ++nics_[s.nic].counters.port_discards;
  if (fate <= Fate::kAnnounced) open_gap(id, s.packets_left + 1, t);
  return Fate::kCorrupted;
}

/// The receiver finds a mark, and tells the sender when it has not done so of late.
void Engine::mark_seen(std::uint32_t id, Time t) {
  const Stream& s = streams_[id];
  ++nics_[s.to].counters.ecn_marked;
  Pace& pace = paces_[id];
  if (t < pace.next_cnp) return;
  pace.next_cnp = t + rule_.cnp_ns;
  ++nics_[s.to].counters.cnps_sent;
  const Time there = send_word(s.to, s.nic, kCnpBytes, t);
  if (there < kNever) return events_.push(there, kNotified, id);
  ++nics_[s.to].counters.cnps_lost;
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
