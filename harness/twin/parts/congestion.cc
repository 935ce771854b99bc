#include "parts/congestion.h"

namespace greynic::twin {

DcqcnRule dcqcn_rule(const Parameters& p) {
  return {.line_gbps = p.link_rate_gbps,
          .minimum_gbps = p.dcqcn_minimum_gbps,
          .gain = p.dcqcn_gain,
          .alpha_ns = p.dcqcn_alpha_us * 1e3,
          .increase_ns = p.dcqcn_increase_us * 1e3,
          .increase_bytes = p.dcqcn_increase_bytes,
          .recovery_steps = static_cast<std::uint32_t>(p.dcqcn_recovery_steps),
          .additive_gbps = p.dcqcn_additive_gbps,
          .hyper_gbps = p.dcqcn_hyper_gbps,
          .cnp_ns = p.dcqcn_cnp_us * 1e3};
}

void Congestion::lay_out() {
  if (!world_.load.dcqcn || !path_.port().present()) return;
  paces_.resize(world_.streams.size());
  rule_ = dcqcn_rule(world_.p);
}

void Congestion::sent(std::uint32_t id, Time wire_ns, Time t, Time there) {
  if (paces_.empty()) return;
  paces_[id].limiter.send(rule_, wire_ns * world_.p.link_rate_gbps / 8, t);
  if (world_.streams[id].to == kServer && path_.port().marked()) {
    world_.events.push(there, event::kMarked, id);
  }
}

void Congestion::marked(std::uint32_t id, Time t) {
  const Stream& s = world_.streams[id];
  NicCounters& receiver = world_.nics[s.to].counters;
  ++receiver.ecn_marked;
  Pace& pace = paces_[id];
  if (t < pace.next_cnp) return;
  pace.next_cnp = t + rule_.cnp_ns;
  ++receiver.cnps_sent;
  const Time there = path_.send_word(world_, s.to, s.nic, header::kCnp, t);
  if (there < kNever) return world_.events.push(there, event::kNotified, id);
  ++receiver.cnps_lost;
}

void Congestion::notified(std::uint32_t id, Time t) {
  ++world_.nics[world_.streams[id].nic].counters.cnps_handled;
  paces_[id].limiter.cut(rule_, t);
}

bool Congestion::is_ahead(std::uint32_t id, Time t) {
  Pace& pace = paces_[id];
  const Time allowed = pace.limiter.allowed_at();
  if (allowed <= t) return false;
  if (!pace.held) world_.events.push(allowed, event::kReleased, id);
  pace.held = true;
  return true;
}

}  // namespace greynic::twin
