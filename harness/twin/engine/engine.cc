#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "greynic/core/check.h"

namespace greynic::twin {
namespace {

constexpr std::size_t kFirstCheck = 128;
/// A run that is not sure yet may take so many times the packets that are usually enough.
constexpr std::uint64_t kPatience = 4;

}  // namespace

Engine::Engine(const Parameters& parameters, const Workload& workload, const Effects& effects,
               std::uint64_t seed)
    : p_(parameters),
      w_(workload),
      effects_(effects),
      random_(seed),
      pcie_{static_cast<int>(p_.pcie_generation), static_cast<int>(p_.pcie_lanes),
            static_cast<int>(p_.pcie_max_payload_bytes),
            static_cast<int>(p_.pcie_max_read_request_bytes)} {
  packet_ns_ = 1e3 / p_.qp_packet_rate_cap_mpps;
  nics_.assign(1 + w_.sender_count, Nic(p_));
  // A short message without overlay takes this; what the published figure has on top is the
  // overlay.
  const double bare = p_.post_request_ns + 2 * (p_.pcie_post_ns + kPcieJitterNs) + packet_ns_ +
                      p_.one_way_ns + p_.completion_ns;
  one_way_ns_ = p_.one_way_ns;
  if (w_.overlay) one_way_ns_ += std::max(0.0, p_.base_half_rtt_us * 1e3 - bare);
}

void Engine::lay_out_shapes(bool ping_pong) {
  const double overhead =
      packet_overhead_bytes(w_.overlay) + (w_.transport == Transport::kUD ? header::kDeth : 0.0);
  const double ns_per_byte = 8.0 / p_.link_rate_gbps;
  const bool response = !w_.carries_data_in_request();
  const double first_extra = w_.operation == Operation::kWrite ? header::kReth
                             : response                        ? header::kAeth
                                                               : 0.0;
  const double gap = w_.operation == Operation::kSend ? p_.send_gap_ns : 0.0;
  // perftest inlines small messages where it measures latency, and nothing where it measures rate.
  const double inlined = w_.inline_bytes ? static_cast<double>(*w_.inline_bytes)
                         : ping_pong     ? p_.max_inline_bytes[w_.operation]
                                         : 0.0;
  for (const std::uint64_t bytes : w_.message_bytes) {
    Shape shape;
    shape.bytes = bytes;
    shape.packets = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(1, (bytes + w_.mtu_bytes - 1) / w_.mtu_bytes));
    const auto full = static_cast<double>(w_.mtu_bytes);
    const double rest = static_cast<double>(bytes) - full * (shape.packets - 1);
    const auto wire = [&](double payload, double extra) {
      return (payload + overhead + extra) * ns_per_byte;
    };
    shape.inlined = bytes == 0 || (static_cast<double>(bytes) <= inlined && !response);
    const auto freight = [&](double payload, Time wire_ns) {
      // Who sends as much as it receives asks for the one on the link that takes the other.
      const bool asks = w_.direction == Direction::kBidirectional && !shape.inlined;
      return Freight{static_cast<std::uint32_t>(payload), wire_ns, pcie_.read_ns(payload),
                     pcie_.write_ns(payload) + (asks ? pcie_.request_ns(payload) : 0.0),
                     p_.stored_stage_count * payload * ns_per_byte};
    };
    shape.middle = freight(full, wire(full, 0));
    shape.first = freight(full, wire(full, first_extra) + gap);
    shape.last = freight(rest, shape.packets == 1 ? wire(rest, first_extra) + gap
                                                  : wire(rest, response ? header::kAeth : 0));
    // Elements of a message are as long as each other; each is read by itself.
    const double ahead = std::min(static_cast<double>(bytes), kTurnPackets * full);
    const double element = std::max(1.0, static_cast<double>(bytes) / w_.sge_count);
    const double elements = std::ceil(ahead / element);
    const double reads = elements * pcie_.read_requests(std::min(element, ahead));
    shape.reads = static_cast<std::uint32_t>(std::max(1.0, reads));
    shapes_.push_back(shape);
  }
  // 16 bytes each: what to do, where to (not of a SEND), and an element.
  const std::uint32_t segments = 1 + (w_.operation == Operation::kSend ? 0 : 1) + w_.sge_count;
  wqe_blocks_ = (segments + 3) / 4;
  if (w_.far_memory) far_memory_ns_ = p_.far_socket_ns;
}

void Engine::lay_out_streams() {
  const bool response = !w_.carries_data_in_request();
  const bool both = w_.direction == Direction::kBidirectional || ping_pong_;
  lane_bits_ = !both && !response ? 0 : both && response && !ping_pong_ ? 2 : 1;
  lanes_ = 1U << lane_bits_;
  const std::uint32_t qps = w_.qp_count * w_.sender_count;
  streams_.resize(static_cast<std::size_t>(qps) * lanes_);
  if (w_.loss > 0) lay_out_recoveries();
  loopback_ = w_.direction == Direction::kLoopback;
  unusual_ = unusual_ || loopback_;
  routed_ = loopback_ || w_.sender_count > 1;
  for (std::uint32_t qp = 0; qp < qps; ++qp) {
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      Stream& s = streams_[qp * lanes_ + lane];
      // Lanes 0 and 1: requests of the client, and what the server sends; 2 and 3 the other way.
      const auto client = static_cast<std::uint8_t>(client_of(qp));
      const bool from_client = lane == 0 || lane == 3;
      s.nic = from_client ? client : kServer;
      s.to = from_client ? kServer : client;
      s.responds = lane % 2 == 1 && response;
      s.receives = w_.receive_depth;
      // Loopback: every other QP stays on the server, whose RNIC receives from the wire as well.
      if (w_.direction == Direction::kLoopback && qp % 2 == 1) s.nic = s.to = 1;
    }
  }
  const double per_page =
      std::max(1.0, static_cast<double>(w_.mr_bytes) / static_cast<double>(w_.page_bytes));
  pages_ =
      static_cast<std::uint64_t>(std::ceil(per_page)) * std::max<std::uint64_t>(1, w_.mr_count);
  for (std::size_t side = 0; side < nics_.size(); ++side) {
    Nic& nic = nics_[side];
    const std::uint64_t own = side == kServer ? qps : w_.qp_count;
    const std::uint64_t wqes = own * w_.send_depth;
    const auto entries = static_cast<std::uint64_t>(p_.context_entry_count);
    nic.contexts = Cache(entries, own, qps, random_.next());
    nic.translations =
        Cache(static_cast<std::uint64_t>(p_.mtt_entry_count), pages_, pages_, random_.next());
    const std::uint64_t flows = p_.has_switch() ? w_.flow_count : 1;
    nic.steering = Cache(static_cast<std::uint64_t>(p_.steering_cache_entry_count), flows, flows,
                         random_.next());
    nic.steering.warm_up();
    nic.wqes = Cache(static_cast<std::uint64_t>(p_.wqe_cache_entry_count), wqes,
                     streams_.size() * w_.send_depth, random_.next());
  }
  lay_out_steering();
  lay_out_congestion();
  lay_out_regions();
  translation_matters_ = !nics_[0].translations.never_misses();
  // QPs are dealt out to units in turn, so units beyond the QPs have nothing to do.
  const auto units_in_use = std::min(static_cast<std::uint32_t>(nics_[0].units.size()), qps);
  // Where the server only acknowledges, its units have nothing to do.
  const bool server_sends = both || response || loopback_;
  const auto sides =
      static_cast<std::uint32_t>(server_sends || w_.sender_count > 1 ? nics_.size() : 1);
  units_ = UnitQueue(sides, units_in_use);
}

void Engine::lay_out_steering() {
  for (std::size_t side = 0; side < 2; ++side) {
    Passage& passage = passages_[side];
    const Hop out = side == 0 ? Hop::kClientEncap : Hop::kServerEncap;
    const Hop in = side == 0 ? Hop::kServerDecap : Hop::kClientDecap;
    passage.encap = {.walk = &w_.walk(out), .per_group_ns = p_.encap_per_group_ns[w_.operation]};
    passage.decap = {.walk = &w_.walk(in), .per_group_ns = p_.decap_per_group_ns[w_.operation]};
    for (Steering* steering : {&passage.encap, &passage.decap}) {
      steering->varies = !steering->walk->shares.empty();
      steering->current = crossing_of(*steering, steering->walk->groups);
    }
  }
  const auto window = static_cast<std::size_t>(w_.overlay ? p_.loop_window_packets : 0);
  for (std::uint32_t side = 0; side < nics_.size(); ++side) {
    Nic& nic = nics_[side];
    const Passage& way = passages_[direction_from(side)];
    const Passage& back = passages_[direction_from(side) ^ 1U];
    nic.transmit_walk = Walk({.equal_walks = !way.encap.varies});
    nic.receive_walk = Walk({.burst_packets = static_cast<std::size_t>(p_.walk_burst_packets),
                             .window_packets = static_cast<std::size_t>(p_.walk_window_packets),
                             .equal_walks = !back.decap.varies});
    nic.loop = Window(window);
    // What of the loop is not the way there: the way back, with the groups it meets.
    const Freight& full = shapes_.front().middle;
    const Time there = one_way_ns_ + full.wire_ns + full.stored_ns + pcie_.write_ns(w_.mtu_bytes);
    nic.loop_rest_ns = p_.loop_base_us * 1e3 - there;
    if (!effects_.masks_in_sequence) continue;
    nic.unit_ns = way.encap.walk->mean() * (p_.encap_unit_cycles_per_group * p_.cycle_ns());
    nic.loop_rest_ns += back.encap.walk->mean() * back.encap.per_group_ns +
                        back.decap.walk->mean() * back.decap.per_group_ns;
  }
}

void Engine::lay_out_threads() {
  hosts_.resize(nics_.size());
  const auto registers =
      static_cast<std::size_t>(p_.doorbell_register_count - p_.doorbell_dedicated_count);
  const bool both = w_.direction != Direction::kUnidirectional;
  const bool shared = w_.thread_count > w_.qp_count;
  if (shared) {
    owners_.resize(streams_.size());
  }
  for (std::uint32_t side = 0; side < nics_.size(); ++side) {
    if (side == kServer && !both) continue;
    hosts_[side].registers.resize(registers);
    if (shared) hosts_[side].qp_locks.resize(streams_.size() >> lane_bits_);
    const auto base = static_cast<std::uint32_t>(threads_.size());
    for (std::uint32_t i = 0; i < w_.thread_count; ++i) {
      Thread& thread = threads_.emplace_back();
      thread.side = side;
      place_thread(thread, i, w_.thread_count, p_);
      thread.left_in_round = w_.send_depth;
      if (shared) {
        const std::uint32_t users =
            (w_.thread_count - i % w_.qp_count + w_.qp_count - 1) / w_.qp_count;
        thread.quota =
            w_.posting == Posting::kRound ? w_.send_depth : std::max(1U, w_.send_depth / users);
      }
    }
    for (std::uint32_t qp = 0; qp < streams_.size() >> lane_bits_; ++qp) {
      for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
        const std::uint32_t id = qp * lanes_ + lane;
        Stream& s = streams_[id];
        if (s.responds || s.nic != side) continue;
        if (w_.direction == Direction::kLoopback && lane != 0) continue;
        if (w_.direction == Direction::kUnidirectional && lane != 0) continue;
        if (shared) {
          for (std::uint32_t i = qp % w_.qp_count; i < w_.thread_count; i += w_.qp_count) {
            threads_[base + i].first_stream = id;
          }
        } else {
          s.thread = base + qp % w_.thread_count;
          free_slot_in(id);
        }
      }
    }
  }
  // Threads do not start in step.
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    events_.push(random_.uniform() * p_.post_request_ns, kThreadStep, i);
  }
}

void Engine::on_period(Time period, std::function<void(Time)> call) {
  period_ = next_period_ = period;
  on_period_ = std::move(call);
}

void Engine::step() {
  const Time packet = units_.time();
  const Time event = events_.next_time();
  now_ = std::min(packet, event);
  while (now_ >= next_period_ && on_period_) {
    on_period_(next_period_);
    next_period_ += period_;
  }
  if (event <= packet) {
    handle(events_.pop());
  } else {
    const UnitQueue::Unit unit = units_.first();
    units_.pop();
    unit_sends(unit, packet);
  }
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case kThreadStep:
      return thread_steps(event.subject, event.time);
    case kDoorbell:
      return doorbell_arrives(event.subject, event.count, event.time);
    case kPayloadWanted:
      return payload_wanted(event.subject, event.count, event.time);
    case kWqeArrives:
      for (std::uint32_t i = 0; i < event.count; ++i) wqe_arrives(event.subject);
      return engine_steps(streams_[event.subject].nic, event.time);
    case kEngineStep:
      nics_[event.subject].engine_busy = false;
      return engine_steps(static_cast<std::uint8_t>(event.subject), event.time);
    case kDataReady:
      streams_[event.subject].ready += event.count;
      return activate(event.subject, event.time);
    case kUnanswered:
      return unanswered(event.subject, event.count, event.time);
    case kDuplicate:
      return acknowledge(event.subject, 0, event.time);
    case kGapSeen:
      return gap_seen(event.subject, event.count, event.time);
    case kGoBack:
    case kTimeout:
      return go_back(event.subject, event.count, event.kind == kTimeout, event.time);
    case kAnnounced:
      return announced(event.subject, event.count, event.time);
    case kNotReady:
      return not_ready(event.subject, event.count, event.time);
    case kRested:
      return rested(event.subject, event.time);
    case kDeregister:
      return deregister(static_cast<std::uint8_t>(event.subject), event.time);
    case kMarked:
      return mark_seen(event.subject, event.time);
    case kNotified:
      return notified(event.subject, event.time);
    case kReleased:
      return released(event.subject, event.time);
    case kDelivered:
      return delivered(event.subject, event.count, event.time);
    case kCompleted:
      return complete(event.subject, event.count, event.time);
    case kPeerAnswers:
      return answer(event.subject, event.time);
    default:
      GREYNIC_CHECK(false);
  }
}

void Engine::stamp(Time t) {
  next_stamp_ += kPacketsPerStamp;
  stamps_.push_back(stamps_.empty() ? t : std::max(stamps_.back(), t));
  stamp_bytes_.push_back(payload_);
}

bool Engine::is_enough(const RunLimits& limits) {
  if (now_ >= limits.duration) return true;
  if (stamps_.size() < next_check_) return false;
  next_check_ = std::max(kFirstCheck, stamps_.size() + stamps_.size() / 4);
  check_conservation();
  if (limits.whole_duration) return false;
  const bool open_loop = !dues_.empty();
  if (data_packets_ >= (open_loop ? kPatience : 1) * limits.most_packets) return true;
  std::vector<double> intervals(stamps_.size() - 1);
  for (std::size_t i = 0; i + 1 < stamps_.size(); ++i) intervals[i] = stamps_[i + 1] - stamps_[i];
  estimate_ = statistics::estimate_steady(intervals);
  if (open_loop) return estimate_.settled && knows_latency();
  // A queue that is still building up can look settled. Every slot should have been used twice,
  // unless there are too many to wait for.
  const bool heard = messages_delivered_ >= 2ULL * w_.qp_count * w_.sender_count * w_.send_depth ||
                     data_packets_ >= limits.most_packets / 4;
  return heard && estimate_.settled && estimate_.relative_error() <= limits.target_error;
}

BandwidthResult Engine::run_bandwidth(const RunLimits& limits) {
  lay_out_shapes(false);
  lay_out_streams();
  lay_out_threads();
  lay_out_arrivals();
  next_check_ = kFirstCheck;
  while (!over() && !enough(limits)) step();
  check_conservation();

  BandwidthResult result;
  result.virtual_time = now_;
  result.packets = data_packets_;
  const std::uint64_t judged = messages_delivered_ + messages_lost_;
  if (judged > 0) {
    result.loss_share = static_cast<double>(messages_lost_) / static_cast<double>(judged);
  }
  Time paused = 0;
  for (const Nic& nic : nics_) paused = std::max(paused, nic.counters.rx_pause);
  result.pause_share = now_ > 0 ? paused / now_ : 0;
  const double messages_per_cycle = static_cast<double>(shapes_.size());
  const double packets_per_message =
      std::accumulate(shapes_.begin(), shapes_.end(), 0.0,
                      [](double sum, const Shape& s) { return sum + s.packets; }) /
      messages_per_cycle;
  std::size_t first = 0;
  Time span = 0;
  if (stamps_.size() >= 3) {
    std::vector<double> intervals(stamps_.size() - 1);
    for (std::size_t i = 0; i + 1 < stamps_.size(); ++i) intervals[i] = stamps_[i + 1] - stamps_[i];
    result.steady = statistics::estimate_steady(intervals);
    first = std::min(result.steady.cut, stamps_.size() - 2);
    span = stamps_.back() - stamps_[first];
  }
  if (span <= 0) {
    // Too slow for statistics: what was moved, over the time it took.
    result.steady = {};
    result.packets_per_second = now_ > 0 ? static_cast<double>(data_packets_) / now_ * 1e9 : 0;
    result.gbps = now_ > 0 ? payload_ * 8 / now_ : 0;
    result.messages_per_second = result.packets_per_second / packets_per_message;
    return result;
  }
  const auto packets = static_cast<double>((stamps_.size() - 1 - first) * kPacketsPerStamp);
  result.warmup_share = stamps_.back() > 0 ? stamps_[first] / stamps_.back() : 0;
  result.packets_per_second = packets / span * 1e9;
  result.gbps = (stamp_bytes_.back() - stamp_bytes_[first]) * 8 / span;
  result.messages_per_second = result.packets_per_second / packets_per_message;
  const double relative = result.steady.relative_error();
  result.packets_error = result.packets_per_second * relative;
  result.gbps_error = result.gbps * relative;
  result.messages_error = result.messages_per_second * relative;
  return result;
}

void Engine::run_outage(Time outage_ns) {
  constexpr Time kBeforeNs = 100e3;
  lay_out_shapes(false);
  lay_out_streams();
  lay_out_threads();
  lay_out_arrivals();
  if (recoveries_.empty()) lay_out_recoveries();
  outage_begins_ = kBeforeNs;
  outage_ends_ = kBeforeNs + outage_ns;
  while (!over() && (now_ < outage_ends_ || unheard_ > 0)) step();
  check_conservation();
}

LatencyResult Engine::run_latency(const RunLimits& limits, std::uint64_t most_rounds) {
  ping_pong_ = true;
  w_.qp_count = w_.thread_count = w_.sender_count = 1;
  nics_.resize(2, Nic(p_));
  w_.post_batch = w_.signal_every = 1;
  w_.direction = Direction::kUnidirectional;
  lay_out_shapes(true);
  lay_out_streams();
  hosts_.resize(2);
  answer(0, random_.uniform() * p_.post_request_ns);
  std::size_t next_check = 16;
  while (now_ < limits.duration && trips_.size() < most_rounds && !events_.empty()) {
    while (!over()) {
      step();
      if (trips_.size() >= next_check || now_ >= limits.duration) break;
    }
    if (trips_.size() < next_check) break;
    next_check = next_check + next_check / 2;
    const statistics::SteadyEstimate steady = statistics::estimate_steady(trips_);
    const bool sure = steady.settled && steady.relative_error() <= limits.target_error;
    const bool long_enough = trips_.size() >= 1000 || data_packets_ >= limits.most_packets;
    if (!limits.whole_duration && long_enough && sure) break;
    if (data_packets_ >= kPatience * limits.most_packets) break;
  }
  check_conservation();
  return latency();
}

std::vector<NicCounters> Engine::all_counters() const {
  std::vector<NicCounters> all;
  for (const Nic& nic : nics_) all.push_back(nic.counters);
  return all;
}

std::size_t Engine::bytes_per_qp() const { return lanes_ * sizeof(Stream); }

}  // namespace greynic::twin
