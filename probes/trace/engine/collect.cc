#include "engine/collect.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace greynic::trace {
namespace {

constexpr std::string_view kReasonPrefix = "SKB_DROP_REASON_";
/// The kernel frees these as drops, though no receiver misses them: copies that a bridge flooded to
/// hosts they were not for, copies for packet sockets, segments of TCP that were merged, and packets
/// that were used up.
constexpr std::string_view kNoLoss[] = {
    "SKB_NOT_DROPPED_YET", "SKB_CONSUMED", "SKB_DROP_REASON_OTHERHOST",
    "SKB_DROP_REASON_PACKET_SOCK_ERROR", "SKB_DROP_REASON_TCP_OFOMERGE"};

/// What frees packets behind the work like dropped ones, without a reason: Soft-RoCE, and what kernels
/// of 6.1 do with the fragments of a packet whose own end they report.
constexpr std::string_view kReasonless = "SKB_DROP_REASON_NOT_SPECIFIED";
constexpr std::string_view kUsersOfPackets[] = {"rxe_completer+", "rxe_responder+", "rxe_receiver+",
                                                "skb_release_data+"};

std::string protocol_name(std::uint8_t protocol) {
  switch (protocol) {
    case 0:
      return "ip";
    case 1:
      return "icmp";
    case 6:
      return "tcp";
    case 17:
      return "udp";
    case 58:
      return "icmpv6";
    case 132:
      return "sctp";
    default:
      return fmt::format("ip-protocol-{}", protocol);
  }
}

std::string end_text(const __u64 (&words)[2], std::uint16_t port) {
  Address address{};
  std::memcpy(address.data(), words, address.size());
  const std::string text = address_text(address);
  if (port == 0) return text;
  const bool v6 = text.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", text, port) : fmt::format("{}:{}", text, port);
}

std::string flow_text(const greynic_flow& flow) {
  const bool hidden = flow.source[1] == 0 && flow.destination[1] == 0 && flow.source[0] == 0;
  if (hidden) return "all";
  std::string text = fmt::format("{} {} > {}", protocol_name(flow.protocol),
                                 end_text(flow.source, flow.source_port),
                                 end_text(flow.destination, flow.destination_port));
  if (flow.vni != GREYNIC_ANY) text += fmt::format(" vni {}", flow.vni);
  if (flow.queue_pair != GREYNIC_ANY) text += fmt::format(" qp {}", flow.queue_pair);
  return text;
}

/// Adds what all CPUs have counted of one cell.
void add_cell(const std::vector<greynic_cell_stats>& cpus, Hop& hop) {
  for (const greynic_cell_stats& one : cpus) {
    hop.packets += one.packets;
    hop.segments += one.segments;
    hop.timed += one.timed;
    hop.sum_ns += static_cast<double>(one.sum_ns);
    hop.max_ns = std::max<std::uint64_t>(hop.max_ns, one.max_ns);
    for (std::size_t i = 0; i < GREYNIC_BUCKETS; ++i) hop.delays.add(i, one.buckets[i]);
  }
}

using Key = std::array<std::uint32_t, 3>;  // flow, from, to

/// Where a packet would have been next: where most of its flow went from there; else the other end
/// of a veth; else nowhere.
std::uint32_t usual_next(const std::map<Key, Hop>& hops, std::uint32_t flow, std::uint32_t from,
                         const DeviceNumbers& numbers) {
  std::uint64_t most = 0;
  std::uint32_t next = GREYNIC_NOWHERE;
  for (auto it = hops.lower_bound(Key{flow, from, 0}); it != hops.end(); ++it) {
    if (it->first[0] != flow || it->first[1] != from) break;
    if (it->second.packets > most) {
      most = it->second.packets;
      next = it->first[2];
    }
  }
  if (next != GREYNIC_NOWHERE || (from & 1) == GREYNIC_RX) return next;
  const std::uint32_t peer = numbers.peer(from >> 1);
  return peer != 0 ? peer << 1 | GREYNIC_RX : GREYNIC_NOWHERE;
}

}  // namespace

Result<Collector> Collector::open(const bpf::Object& object) {
  Collector made(object);
  auto reasons = bpf::enum_names("skb_drop_reason");
  if (!reasons) return pass_on(reasons);
  made.reasons_ = std::move(*reasons);
  made.symbols_ = bpf::KernelSymbols::read();
  const auto no_loss = object.map<std::uint32_t, std::uint32_t>("no_loss");
  if (!no_loss) return pass_on(no_loss);
  for (std::uint32_t i = 0; i < made.reasons_.size() && i < GREYNIC_REASONS; ++i) {
    if (std::find(std::begin(kNoLoss), std::end(kNoLoss), made.reasons_[i]) == std::end(kNoLoss)) {
      continue;
    }
    if (const auto put = no_loss->put(i, 1); !put) return pass_on(put);
  }
  return made;
}

greynic_counters Collector::counters() const {
  greynic_counters sum{};
  const auto map = object_->per_cpu_array<greynic_counters>("counters");
  if (!map) return sum;
  const auto cpus = map->look_up(0);
  if (!cpus) return sum;
  // Numbers of 8 bytes all through.
  auto* const into = reinterpret_cast<std::uint64_t*>(&sum);
  for (const greynic_counters& one : *cpus) {
    const auto* const from = reinterpret_cast<const std::uint64_t*>(&one);
    for (std::size_t i = 0; i < sizeof sum / sizeof *into; ++i) into[i] += from[i];
  }
  return sum;
}

Collector::FlowNames Collector::flow_names(const std::vector<std::string>& rules) const {
  FlowNames names = {{0, {"all other flows", ""}}};
  const auto map = object_->map<greynic_flow, std::uint32_t>("flows");
  if (!map) return names;
  for (const auto& [flow, number] : map->entries()) {
    names[number] = {flow_text(flow), flow.file_rule < rules.size() ? rules[flow.file_rule] : ""};
  }
  return names;
}

std::string Collector::reason_name(std::uint32_t reason) const {
  if (reason >= reasons_.size() || reasons_[reason].empty()) return fmt::format("{}", reason);
  const std::string& name = reasons_[reason];
  return name.rfind(kReasonPrefix, 0) == 0 ? name.substr(kReasonPrefix.size()) : name;
}

bool Collector::used_up(std::uint64_t place, std::uint32_t reason) const {
  if (place == 0 || reason >= reasons_.size() || reasons_[reason] != kReasonless) return false;
  const std::string name = symbols_.name_of(place);
  return std::any_of(std::begin(kUsersOfPackets), std::end(kUsersOfPackets),
                     [&](std::string_view user) { return name.rfind(user, 0) == 0; });
}

Counted Collector::hops(const DeviceNumbers& numbers, const std::vector<std::string>& rules) const {
  Counted counted;
  std::map<Key, Hop> found;
  const auto pairs = object_->map<greynic_pair, std::uint32_t>("pairs");
  const auto stats = object_->per_cpu_array<greynic_cell_stats>("stats");
  const auto losses = object_->map<greynic_loss, std::uint64_t>("losses");
  if (!pairs || !stats || !losses) return counted;
  if (const auto cpus = stats->look_up(0)) {
    for (const greynic_cell_stats& one : *cpus) counted.without_room += one.packets;
  }
  counted.events = counted.without_room;
  const FlowNames names = flow_names(rules);
  for (const auto& [pair, cell] : pairs->entries()) {
    const auto cpus = stats->look_up(cell);
    if (!cpus) continue;
    std::uint64_t packets = 0;
    for (const greynic_cell_stats& one : *cpus) packets += one.packets;
    counted.events += packets;
    if (pair.from != GREYNIC_NOWHERE) {
      add_cell(*cpus, found[{pair.flow, pair.from, pair.to}]);
      continue;
    }
    const auto name = names.find(pair.flow);
    counted.begins.push_back({.flow = name == names.end() ? FlowName() : name->second,
                              .point = numbers.point(pair.to),
                              .packets = packets});
  }
  std::map<Key, Hop> lost;
  for (const auto& [loss, count] : losses->entries()) {
    if (used_up(loss.place, loss.reason)) continue;
    const std::uint32_t to =
        loss.to != GREYNIC_NOWHERE ? loss.to : usual_next(found, loss.flow, loss.from, numbers);
    Hop& hop = lost[{loss.flow, loss.from, to}];
    hop.lost += count;
    hop.lost_reasons[reason_name(loss.reason)] += count;
    hop.lost_places[symbols_.name_of(loss.place)] += count;
  }
  for (auto& [key, hop] : lost) {
    Hop& into = found[key];
    into.lost = hop.lost;
    into.lost_reasons = std::move(hop.lost_reasons);
    into.lost_places = std::move(hop.lost_places);
  }
  for (auto& [key, hop] : found) {
    const auto name = names.find(key[0]);
    if (name != names.end()) hop.flow = name->second;
    hop.from = numbers.point(key[1]);
    hop.to = numbers.point(key[2]);
    counted.hops.push_back(std::move(hop));
  }
  return counted;
}

JourneyEvent Collector::event(const greynic_record& record, const DeviceNumbers& numbers,
                              const std::vector<std::string>& rules) {
  if (known_flows_.count(record.flow) == 0) known_flows_ = flow_names(rules);
  JourneyEvent made{
      .journey = record.journey,
      .time_ns = static_cast<std::int64_t>(record.time_ns),
      .identity = record.identity,
      .flow = known_flows_[record.flow],
      .point = numbers.point(record.kind == GREYNIC_LOST ? record.from : record.point),
      .lost = record.kind == GREYNIC_LOST,
      .bytes = record.bytes};
  if (made.lost) {
    made.reason = reason_name(record.reason);
    made.place = symbols_.name_of(record.place);
  }
  return made;
}

}  // namespace greynic::trace
