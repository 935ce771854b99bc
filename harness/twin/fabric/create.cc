#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>

#include "fabric/simulation.h"
#include "greynic/core/check.h"
#include "parts/congestion.h"
#include "target/counters.h"

/// A fabric from its description, and the loop that takes what happens next.

namespace greynic::twin {

std::string_view to_string(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return "IBV_WC_SUCCESS";
    case WcStatus::kLocalLength:
      return "IBV_WC_LOC_LEN_ERR";
    case WcStatus::kLocalQpOperation:
      return "IBV_WC_LOC_QP_OP_ERR";
    case WcStatus::kLocalProtection:
      return "IBV_WC_LOC_PROT_ERR";
    case WcStatus::kFlushed:
      return "IBV_WC_WR_FLUSH_ERR";
    case WcStatus::kWindowBind:
      return "IBV_WC_MW_BIND_ERR";
    case WcStatus::kRemoteInvalidRequest:
      return "IBV_WC_REM_INV_REQ_ERR";
    case WcStatus::kRemoteAccess:
      return "IBV_WC_REM_ACCESS_ERR";
    case WcStatus::kRemoteOperation:
      return "IBV_WC_REM_OP_ERR";
    case WcStatus::kRetriesExceeded:
      return "IBV_WC_RETRY_EXC_ERR";
    case WcStatus::kRnrRetriesExceeded:
      return "IBV_WC_RNR_RETRY_EXC_ERR";
  }
  return "unknown status";
}

Result<std::unique_ptr<Fabric>> Fabric::create(const FabricSpec& spec) {
  auto simulation = std::make_unique<fabric::Simulation>(spec);
  if (auto laid_out = simulation->lay_out(); !laid_out) {
    return laid_out.error().while_doing("creating a fabric");
  }
  return simulation;
}

Result<void> Fabric::connect(QpId a, HostId host_a, QpId b, HostId host_b,
                             QpAttributes attributes) {
  for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
    attributes.peer_host = host_b;
    attributes.peer_qp = b.id;
    if (auto moved = modify(a, to, attributes); !moved) return moved;
    attributes.peer_host = host_a;
    attributes.peer_qp = a.id;
    if (auto moved = modify(b, to, attributes); !moved) return moved;
  }
  return {};
}

namespace fabric {
namespace {

constexpr std::uint32_t kMostHosts = 10000;

/// Models that are compiled in never change: each is read once, for all fabrics.
Result<RnicModel> model_of(const std::string& name, const std::string& profile) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, RnicModel> read;
  const auto names = embedded_model_names();
  if (std::ranges::find(names, name) == names.end()) return load_model(name, profile);
  const std::lock_guard lock(mutex);
  const auto found = read.find({name, profile});
  if (found != read.end()) return found->second;
  auto model = load_model(name, profile);
  if (model) read.emplace(std::pair{name, profile}, *model);
  return model;
}

Result<void> check(const FabricSpec& spec) {
  const auto refuse = [](const char* what, double value, const char* range) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {} is not {}", what, value, range));
  };
  if (spec.host_count < 1 || spec.host_count > kMostHosts) {
    return refuse("host_count", spec.host_count, "1 to 10000");
  }
  if (spec.hosts_per_leaf > 0 && (spec.spine_count < 1 || spec.spine_count > 1024)) {
    return refuse("spine_count", spec.spine_count, "1 to 1024");
  }
  if (!(spec.loss >= 0 && spec.loss < 1)) return refuse("loss", spec.loss, "0 to below 1");
  if (!(spec.hop_ns >= 0 && spec.hop_ns < 1e9)) return refuse("hop_ns", spec.hop_ns, "0 to 1e9");
  if (!(spec.uplink_gbps >= 0)) return refuse("uplink_gbps", spec.uplink_gbps, "0 or more");
  for (const auto& [host, own] : spec.others) {
    if (host >= spec.host_count) {
      return refuse("others", host, "the number of a host: they are counted from 0");
    }
  }
  return {};
}

}  // namespace

Simulation::Simulation(const FabricSpec& spec)
    : spec_(spec), s_(statistics::split_mix(spec.seed)), network_(s_, spec_) {}

Result<void> Simulation::lay_out() {
  if (auto fine = check(spec_); !fine) return fine;
  hosts_.resize(spec_.host_count);
  std::vector<HostLink> links;
  for (HostId host = 0; host < spec_.host_count; ++host) {
    if (auto done = lay_out_host(host); !done) return done;
    links.push_back(link_of(hosts_[host]));
  }
  network_.lay_out(std::move(links));
  calls_.emplace_back();  // number 0 is none
  return {};
}

Result<const RnicType*> Simulation::type_of(const HostSpec& spec) {
  const auto model_key = std::make_pair(spec.rnic, spec.profile);
  auto found = models_.find(model_key);
  if (found == models_.end()) {
    auto model = model_of(spec.rnic, spec.profile);
    if (!model) return pass_on(model);
    found = models_.emplace(model_key, std::move(*model)).first;
  }
  const Parameters& p = found->second.parameters;
  const bool overlay = spec.overlay == HostSpec::Overlay::kByModel
                           ? p.has_switch()
                           : spec.overlay == HostSpec::Overlay::kOn;
  const RnicType*& type = type_by_spec_[{spec.rnic, spec.profile, overlay}];
  if (type == nullptr) {
    auto made = std::make_unique<RnicType>();
    made->p = p;
    made->pcie = {static_cast<int>(p.pcie_generation), static_cast<int>(p.pcie_lanes),
                  static_cast<int>(p.pcie_max_payload_bytes),
                  static_cast<int>(p.pcie_max_read_request_bytes)};
    made->overlay = overlay;
    made->packet_ns = 1e3 / p.qp_packet_rate_cap_mpps;
    made->one_way_ns = one_way(p, overlay);
    made->write_request_ns = 1e3 / p.peak_write_mops;
    made->read_request_ns = 1e3 / p.peak_read_mops;
    made->write_completion_ns = made->pcie.write_ns(64);
    made->loop_window = overlay ? static_cast<std::size_t>(p.loop_window_packets) : 0;
    made->loop_ns = p.loop_base_us * 1e3 - made->one_way_ns;
    made->dcqcn = dcqcn_rule(p);
    for (std::size_t i = 0; i < kOperationCount; ++i) {
      made->words[i].operation = made->notifications[i].operation = static_cast<Operation>(i);
      const double bytes = packet_overhead_bytes(overlay);
      made->words[i].set_wire(bytes + header::kAeth, p.link_rate_gbps);
      made->notifications[i].set_wire(bytes + header::kCnp, p.link_rate_gbps);
    }
    type = made.get();
    types_.push_back(std::move(made));
  }
  return type;
}

Result<void> Simulation::lay_out_host(HostId id) {
  HostPart& host = hosts_[id];
  const auto own = spec_.others.find(id);
  host.spec = own == spec_.others.end() ? spec_.host : own->second;
  auto type = type_of(host.spec);
  if (!type) return type.error().while_doing(fmt::format("host {}", id));
  host.type = *type;
  const Parameters& p = host.type->p;
  if (host.spec.link_gbps > 0 && host.spec.link_gbps < p.link_rate_gbps) {
    host.stretch = p.link_rate_gbps / host.spec.link_gbps;
  }
  host.spec.thread_count = std::max(1U, host.spec.thread_count);
  return set_groups(id, host.spec.encap_groups, host.spec.decap_groups);
}

HostLink Simulation::link_of(const HostPart& host) const {
  const Parameters& p = host.type->p;
  return {.gbps = p.link_rate_gbps / host.stretch,
          .latency = host.type->one_way_ns / 2,
          .limits = {.ecn_low = p.port_ecn_low_kbytes * 1e3,
                     .ecn_high = p.port_ecn_high_kbytes * 1e3,
                     .ecn_share = p.port_ecn_share,
                     .lossless = spec_.pfc,
                     .pause = p.port_pause_kbytes * 1e3,
                     .resume = p.port_resume_kbytes * 1e3,
                     .buffer = p.port_buffer_kbytes * 1e3}};
}

Result<void> Simulation::set_groups(HostId id, double encap, double decap) {
  if (!is_host(id)) return fail(ErrorCode::kBadInput, fmt::format("there is no host {}", id));
  HostPart& host = hosts_[id];
  const Parameters& p = host.type->p;
  const double most = p.mask_shape_limit >= 0 ? p.mask_shape_limit : 1e9;
  for (const double groups : {encap, decap}) {
    if (groups >= 0 && groups <= most) continue;
    return fail(ErrorCode::kBadInput,
                fmt::format("host {}: {} groups; its eSwitch holds 0 to {}", id, groups, most));
  }
  host.spec.encap_groups = encap;
  host.spec.decap_groups = decap;
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    host.encap[i] = cross_groups(p, encap, p.encap_per_group_ns[operation], true);
    host.decap[i] = cross_groups(p, decap, p.decap_per_group_ns[operation], true);
  }
  host.unit_ns = encap * p.encap_unit_cycles_per_group * p.cycle_ns();
  return {};
}

/// The RNIC of a host comes into being with its first use, and its caches grow with what it holds.
void Simulation::refresh(HostId id) {
  HostPart& host = hosts_[id];
  const Parameters& p = host.type->p;
  host.stale = false;
  if (!host.nic) {
    host.nic = std::make_unique<Nic>(p);
    // Operations walk differently far.
    host.nic->transmit_walk = Walk({.equal_walks = false});
    host.nic->receive_walk =
        Walk({.burst_packets = static_cast<std::size_t>(p.walk_burst_packets),
              .window_packets = static_cast<std::size_t>(p.walk_window_packets),
              .equal_walks = false});
    network_.buffer_of(id) = &host.nic->receive_buffer;
    host.registers.resize(
        static_cast<std::size_t>(p.doorbell_register_count - p.doorbell_dedicated_count));
  }
  const auto cache = [&](double entries, std::uint64_t ids) {
    const std::uint64_t bound = std::bit_ceil(std::max<std::uint64_t>(ids, 64));
    return Cache(static_cast<std::uint64_t>(entries), ids, bound, s_.random.next());
  };
  host.nic->contexts = cache(p.context_entry_count, host.qp_count);
  host.nic->translations = cache(p.mtt_entry_count, host.page_count);
  host.nic->wqes = cache(p.wqe_cache_entry_count, host.wqe_count);
  host.nic->steering = cache(p.steering_cache_entry_count, host.qp_count);
}

bool Simulation::step() {
  if (s_.events.empty()) return false;
  if (ahead_-- == 0) [[unlikely]]
    look_ahead();
  const Event event = s_.events.pop();
  s_.now = std::max(s_.now, event.time);
  handle(event);
  return true;
}

void Simulation::run_until(Time until) {
  while (s_.events.next_time() <= until) step();
  s_.now = std::max(s_.now, until);
  for (HostPart& host : hosts_) {
    if (host.observer != nullptr) report_egress(host, s_.now);
  }
}

void Simulation::run() {
  while (step()) {
  }
  for (HostPart& host : hosts_) {
    if (host.observer != nullptr) report_egress(host, kNever);
  }
}

void Simulation::handle(const Event& event) {
  const std::uint32_t id = event.subject;
  switch (event.kind) {
    case event::kAtSwitch:
      return network_.at_switch(id);
    case event::kPortFree:
      return network_.port_free(id);
    case event::kPausePort:
      return network_.pause_port(id, event.count != 0);
    case event::kPauseHost:
      return pause_host(id, event.count != 0);
    case event::kAtHost:
      return at_host(id);
    case event::kUnitDone:
      return unit_done(id, event.count);
    case event::kEngineStep:
      hosts_[id].nic->engine_busy = false;
      return engine_goes_on(id);
    case event::kPlaceFree:
      return place_free(id);
    case event::kDropped:
      return leave_loop(id, s_.now);
    case event::kThread:
      return run_thread(id, event.count);
    case event::kCall:
    case event::kSeen:
      return run_call(id);
    default:
      break;
  }
  if (event.kind == event::kDelivered) {
    Qp* receiver = qp_numbered(s_.packets[id].to_qp);
    if (receiver != nullptr) return delivered(*receiver, id);
    return s_.packets.give_back(id);
  }
  Qp* qp = qps_.find(id);
  if (qp != nullptr && !qp->gone) handle(event, *qp);
}

void Simulation::handle(const Event& event, Qp& qp) {
  switch (event.kind) {
    case event::kDoorbell:
      return doorbell(qp, event.count);
    case event::kWqesArrive:
      return wqes_arrive(qp, event.count);
    case event::kPayloadWanted:
      return payload_wanted(qp, event.count);
    case event::kDataReady:
      ++qp.requests.ready;
      finish_requests(qp);  // it may have failed here
      return activate(qp, false, s_.now);
    case event::kAnswerWanted:
      return answer_wanted(qp, event.count, s_.now);
    case event::kResponseReady:
      if (qp.state == QpState::kError) return;  // its answers are gone
      ++qp.answers.ready;
      return activate(qp, true, s_.now);
    case event::kAcknowledged:
      qp.acknowledged = std::max(qp.acknowledged, event.count);
      return finish_requests(qp);
    case event::kAnswerWritten:
      return recall_wqe(qp, event.count);
    case event::kAnswered:
    case event::kSentOff:
      if (event.count - qp.done < qp.posted - qp.done) qp.work(event.count).answered = true;
      return finish_requests(qp);
    case event::kReceived:
      if (!qp.received.empty()) complete(*qp.receive_cq, qp.received.pop());
      return;
    case event::kTimer:
      return timer(qp);
    case event::kRested:
      qp.resting = false;
      return activate(qp, false, s_.now);
    case event::kReleased:
      (event.count != 0 ? qp.answers : qp.requests).held = false;
      return activate(qp, event.count != 0, s_.now);
    default:
      GREYNIC_CHECK(false);
  }
}

Result<void> Simulation::observe(PortId port, PortObserver* observer) {
  if (port.of_host && is_host(port.device) && port.port == 0) {
    report_egress(hosts_[port.device], kNever);
    hosts_[port.device].observer = observer;
    return {};
  }
  if (!network_.observe(port, observer)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("there is no port {} of {} {}; ports() lists all", port.port,
                            port.of_host ? "host" : "switch", port.device));
  }
  return {};
}

std::vector<std::pair<std::string, double>> Simulation::counters(HostId host) const {
  if (!is_host(host)) return {};
  const NicCounters none{};
  const NicCounters& own = hosts_[host].nic ? hosts_[host].nic->counters : none;
  return name_counters(
      std::span(&own, 1), hosts_[host].type->p.steering_pipe_count,
      {.recovery = spec_.loss > 0 || !spec_.pfc, .errors = true, .congestion = spec_.dcqcn});
}

std::size_t Simulation::bytes_of_host(HostId id) const {
  if (!is_host(id)) return 0;
  const HostPart& host = hosts_[id];
  std::size_t bytes = sizeof(HostPart) + network_.bytes_of_port() +
                      host.threads.capacity() * sizeof(HostThread) + host.qp_count * sizeof(Qp);
  if (host.nic) {
    bytes += sizeof(Nic) + host.registers.size() * sizeof(ContendedLock) +
             sizeof(Time) * static_cast<std::size_t>(host.type->p.receive_buffer_packets +
                                                     host.type->p.transmit_buffer_packets +
                                                     host.type->p.pcie_read_slot_count +
                                                     host.type->p.context_fetch_slot_count) +
             host.nic->units.size() * sizeof(Unit);
  }
  for (const std::uint32_t qp_id : numbers_) {
    const Qp* qp = qps_.find(qp_id);
    if (qp != nullptr && qp->host == id) bytes += qp->ring.capacity() * sizeof(Work);
  }
  return bytes;
}

}  // namespace fabric
}  // namespace greynic::twin
