#include "engine/engine.h"

#include <algorithm>
#include <utility>

/// Set-up, the kinds of runs, and their books.

namespace greynic::twin {

Engine::Engine(const Parameters& parameters, const HostLoad& load, const Effects& effects,
               std::uint64_t seed)
    : world_(parameters, load, effects, seed) {}

void Engine::lay_out(bool ping_pong) {
  world_.ping_pong = ping_pong;
  world_.messages = MessageCycle(world_.p, world_.load, world_.pcie, ping_pong);
  requests_.lay_out();
  memory_.lay_out();
  lay_out_streams();
  receives_.lay_out();
  if (world_.load.loss > 0) recovery_.lay_out();
  lay_out_caches();
  path_.lay_out(world_);
  if (path_.port().present() && !world_.load.pfc && !recovery_.active()) recovery_.lay_out();
  congestion_.lay_out();
  memory_.lay_out_regions();
  lay_out_units();
  if (!ping_pong) threads_.lay_out();
}

void Engine::lay_out_streams() {
  const HostLoad& load = world_.load;
  const bool response = !load.carries_data_in_request();
  const bool both = load.direction == Direction::kBidirectional || world_.ping_pong;
  world_.lane_bits = !both && !response ? 0 : both && response && !world_.ping_pong ? 2 : 1;
  world_.lanes = 1U << world_.lane_bits;
  world_.loopback = load.direction == Direction::kLoopback;
  world_.unusual = world_.loopback;
  routed_ = world_.loopback || load.sender_count > 1;
  const std::size_t qps = std::size_t{load.qp_count} * load.sender_count;
  world_.streams.resize(qps * world_.lanes);
  for (std::uint32_t id = 0; id < world_.streams.size(); ++id) lay_out_stream(id);
}

void Engine::lay_out_stream(std::uint32_t id) {
  const HostLoad& load = world_.load;
  Stream& s = world_.streams[id];
  const std::uint32_t qp = world_.qp_of(id);
  const std::uint32_t lane = id % world_.lanes;
  // The client that a QP belongs to, by its number among the RNICs.
  const std::uint32_t sender = qp / load.qp_count;
  const auto client = static_cast<std::uint8_t>(sender == 0 ? 0 : sender + 1);
  // Lanes 0 and 1: requests of the client, and what the server sends; 2 and 3 the other way.
  const bool from_client = lane == 0 || lane == 3;
  s.nic = from_client ? client : kServer;
  s.to = from_client ? kServer : client;
  s.responds = lane % 2 == 1 && !load.carries_data_in_request();
  // Loopback: every other QP stays on the server, whose RNIC receives from the wire as well.
  if (world_.loopback && qp % 2 == 1) s.nic = s.to = kServer;
}

void Engine::lay_out_caches() {
  const Parameters& p = world_.p;
  const HostLoad& load = world_.load;
  const auto entries = [](double count) { return static_cast<std::uint64_t>(count); };
  const auto seed = [&] { return world_.random.next(); };
  const std::uint64_t qps = std::uint64_t{load.qp_count} * load.sender_count;
  const std::uint64_t flows = p.has_switch() ? load.flow_count : 1;
  const std::uint64_t pages = memory_.pages();
  for (std::uint32_t side = 0; side < world_.nics.size(); ++side) {
    Nic& nic = world_.nics[side];
    const std::uint64_t own = side == kServer ? qps : load.qp_count;
    nic.contexts = Cache(entries(p.context_entry_count), own, qps, seed());
    nic.translations = Cache(entries(p.mtt_entry_count), pages, pages, seed());
    nic.steering = Cache(entries(p.steering_cache_entry_count), flows, flows, seed());
    nic.steering.warm_up();
    nic.wqes = Cache(entries(p.wqe_cache_entry_count), own * load.send_depth,
                     world_.streams.size() * load.send_depth, seed());
  }
}

void Engine::lay_out_units() {
  const HostLoad& load = world_.load;
  const std::uint32_t qps = load.qp_count * load.sender_count;
  const auto units_in_use = std::min(static_cast<std::uint32_t>(world_.nics[0].units.size()), qps);
  // Where the server only acknowledges, its units have nothing to do.
  const bool server_sends = load.direction == Direction::kBidirectional || world_.ping_pong ||
                            !load.carries_data_in_request() || world_.loopback;
  const auto sides =
      static_cast<std::uint32_t>(server_sends || load.sender_count > 1 ? world_.nics.size() : 1);
  units_.lay_out(sides, units_in_use);
}

BandwidthResult Engine::run_bandwidth(const RunLimits& limits) {
  lay_out(false);
  while (!over() && !enough(limits)) step();
  check_books();
  return meter_.bandwidth(now_);
}

void Engine::run_outage(Time outage_ns) {
  constexpr Time kBeforeNs = 100e3;
  const Time ends = kBeforeNs + outage_ns;
  lay_out(false);
  if (!recovery_.active()) recovery_.lay_out();
  recovery_.go_silent(kBeforeNs, ends);
  while (!over() && (now_ < ends || recovery_.unheard_count() > 0)) step();
  check_books();
}

LatencyResult Engine::run_latency(const RunLimits& limits, std::uint64_t most_rounds) {
  HostLoad& load = world_.load;
  load.qp_count = load.thread_count = load.sender_count = 1;
  load.post_batch = load.signal_every = 1;
  load.direction = Direction::kUnidirectional;
  world_.nics.resize(2, Nic(world_.p));
  lay_out(true);
  post_round_trip(0, world_.random.uniform() * world_.p.post_request_ns);
  std::size_t next_check = 16;
  while (now_ < limits.duration && meter_.trip_count() < most_rounds && !world_.events.empty()) {
    while (!over()) {
      step();
      if (meter_.trip_count() >= next_check || now_ >= limits.duration) break;
    }
    if (meter_.trip_count() < next_check) break;
    next_check = next_check + next_check / 2;
    if (meter_.knows_trips(limits)) break;
  }
  check_books();
  return latency();
}

bool Engine::is_enough(const RunLimits& limits) {
  if (now_ >= limits.duration) return true;
  check_books();
  return meter_.knows_bandwidth(limits, arrivals_.open_loop());
}

void Engine::on_period(Time period, std::function<void(Time)> call) {
  periods_.push_back({period, period, std::move(call)});
  next_period_ = std::min(next_period_, period);
}

void Engine::pass_periods() {
  next_period_ = kNever;
  for (Period& one : periods_) {
    for (; now_ >= one.next; one.next += one.length) one.call(one.next);
    next_period_ = std::min(next_period_, one.next);
  }
}

std::vector<NicCounters> Engine::all_counters() const {
  std::vector<NicCounters> all;
  for (const Nic& nic : world_.nics) all.push_back(nic.counters);
  return all;
}

void Engine::check_books() const {
#ifndef NDEBUG
  check(ledger());
#endif
}

Ledger Engine::ledger() const {
  Ledger ledger;
  ledger.load = world_.load;
  ledger.messages = world_.messages;
  ledger.shared_qps = threads_.shared();
  ledger.open_loop = arrivals_.open_loop();
  ledger.threads_count = !world_.ping_pong;
  ledger.held = threads_.held_count();
  ledger.payload = world_.moved.payload;
  for (std::uint32_t id = 0; id < world_.streams.size(); ++id) {
    LedgerLine& line = ledger.lines.emplace_back();
    line.stream = world_.streams[id];
    if (ledger.shared_qps) line.owners = threads_.owner_count(id);
    if (ledger.open_loop) line.due = arrivals_.open_count(id);
    if (!recovery_.active()) continue;
    const StreamRecovery& recovery = recovery_[id];
    line.unacknowledged = recovery.unacknowledged;
    if (recovery.behind_gap) line.behind_gap = line.stream.sent - recovery.message;
  }
  for (const Nic& nic : world_.nics) {
    ledger.rnics.push_back({nic.counters, nic.read_slots.taken()});
    nic.for_each_request([&](std::uint32_t stream) { ++ledger.lines[stream].waiting; });
  }
  receives_.for_each_refill([&](std::uint32_t stream) { ++ledger.lines[stream].refills; });
  for (std::uint32_t id = 0; recovery_.active() && id < world_.streams.size(); ++id) {
    if (recovery_[id].received) ++ledger.lines[receives_.pool_of(id)].refills;
  }
  count_events(ledger);
  return ledger;
}

/// Of requests that are on their way as events.
void Engine::count_events(Ledger& ledger) const {
  for (const Event& event : world_.events.all()) {
    if (event.kind == event::kDeregister || event.kind == event::kThreadStep ||
        event.kind == event::kEngineStep) {
      continue;  // not about a stream
    }
    LedgerLine& line = ledger.lines[event.subject];
    switch (event.kind) {
      case event::kDoorbell:
      case event::kWqeArrives:
        line.posted += event.count;
        break;
      case event::kPayloadWanted:
        ++line.fetching;
        break;
      case event::kDataReady:
        line.fetching += event.count;
        break;
      case event::kDelivered:
        if (!recovery_.is_void(event.subject, event.count)) ++line.arriving;
        break;
      case event::kCompleted:
        line.completing += event.count;
        break;
      case event::kNotified:
        ++ledger.notifications;
        break;
      default:  // not about a request
        break;
    }
  }
}

}  // namespace greynic::twin
