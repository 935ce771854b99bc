#include "greynic/burst/analyser.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

namespace greynic::burst {
namespace {

constexpr std::size_t kMostProfilePackets = 20'000;

}  // namespace

std::uint64_t Burst::victim_packets() const {
  std::uint64_t sum = 0;
  for (const FlowShare& flow : victim_flows()) sum += flow.packets;
  return sum;
}

void FlowTable::add(const FlowKey& flow, std::uint64_t bytes) {
  if (used_.empty() || slots_[last_].flow != flow) {
    if (used_.size() * 4 >= mask_) grow();  // a quarter full, or without slots
    std::size_t at = flow.hash() & mask_;
    while (slots_[at].packets != 0 && slots_[at].flow != flow) at = (at + 1) & mask_;
    if (slots_[at].packets == 0) {
      slots_[at].flow = flow;
      used_.push_back(static_cast<std::uint32_t>(at));
    }
    last_ = static_cast<std::uint32_t>(at);
  }
  slots_[last_].bytes += bytes;
  ++slots_[last_].packets;
}

void FlowTable::clear() {
  for (const std::uint32_t at : used_) slots_[at] = {};
  used_.clear();
}

void FlowTable::sort_into(std::vector<FlowShare>& all) {
  // Places are sorted, not flows: those are long.
  order_.clear();
  for (const std::uint32_t at : used_) order_.emplace_back(slots_[at].bytes, at);
  std::ranges::sort(order_, [this](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : slots_[a.second].flow < slots_[b.second].flow;
  });
  all.clear();
  for (const auto& [bytes, at] : order_) all.push_back(slots_[at]);
}

void FlowTable::grow() {
  const std::vector<FlowShare> before =
      std::exchange(slots_, std::vector<FlowShare>(std::max<std::size_t>(16, slots_.size() * 2)));
  mask_ = slots_.size() - 1;
  for (std::uint32_t& place : used_) {
    const FlowShare& flow = before[place];
    std::size_t at = flow.flow.hash() & mask_;
    while (slots_[at].packets != 0) at = (at + 1) & mask_;
    slots_[at] = flow;
    place = static_cast<std::uint32_t>(at);
  }
}

bool Analyser::add(const CourierRecord& record) {
  return add(MarkedPacket{.queue = record.queue,
                          .run = record.run(),
                          .flow = record.flow,
                          .bytes = record.bytes(),
                          .enqueued_ns = record.enqueued_ns(),
                          .dequeued_ns = record.dequeued_ns,
                          .depth_at_enqueue = record.depth_at_enqueue,
                          .depth_at_dequeue = record.depth_at_dequeue});
}

bool Analyser::add(const MarkedPacket& packet) {
  Open& open = open_[packet.queue];
  const bool opens = !open.is_open || open.run != packet.run;
  if (opens) {
    if (open.is_open) close(open);
    open.is_open = true;
    open.run = packet.run;
    open.packets.clear();
    open.burst.queue = static_cast<std::uint32_t>(packet.queue);
    open.burst.start_ns = packet.enqueued_ns;
  }
  Burst& burst = open.burst;
  burst.end_ns = std::max(burst.end_ns, packet.dequeued_ns);
  burst.peak_depth_bytes = std::max(
      {burst.peak_depth_bytes, packet.depth_at_enqueue, packet.depth_at_dequeue + packet.bytes});
  ++burst.packets;
  burst.bytes += packet.bytes;
  open.flows.add(packet.flow, packet.bytes);
  if (keeps_profiles_ && open.packets.size() < kMostProfilePackets) {
    open.packets.push_back(courier_record(packet.queue, packet.run, packet.flow, packet.bytes,
                                          packet.enqueued_ns, packet.dequeued_ns,
                                          packet.depth_at_enqueue, packet.depth_at_dequeue));
  }
  return opens;
}

void Analyser::finish(std::uint64_t now_ns) {
  for (Open& open : open_) {
    if (open.is_open && open.burst.end_ns < now_ns) close(open);
  }
}

void Analyser::close(Open& open) {
  Burst& burst = open.burst;
  open.flows.sort_into(burst.flows);
  open.indirect.sort_into(burst.indirect);
  for (auto flow = burst.flows.rbegin(); flow != burst.flows.rend(); ++flow) {
    if (flow->bytes * burst.flows.size() * 2 >= burst.bytes) break;
    ++burst.victims;
  }
  senders_.clear();
  for (const FlowShare& flow : burst.flows) senders_.add(sender_key(flow.flow), 0);
  burst.incast_degree = static_cast<std::uint32_t>(senders_.flows());
  add_profile(open, burst);
  open.flows.clear();
  open.indirect.clear();
  open.is_open = false;
  found_(burst);
  // The next burst of this queue needs as much memory again.
  Burst next;
  std::swap(next.flows, burst.flows);
  std::swap(next.indirect, burst.indirect);
  burst = std::move(next);
}

void Analyser::add_profile(const Open& open, Burst& burst) {
  if (open.packets.size() < burst.packets) return;  // longer than is kept
  if (deepest_.size() == kMostProfiles) {
    if (burst.peak_depth_bytes <= deepest_.front()) return;
    std::ranges::pop_heap(deepest_, std::greater());
    deepest_.pop_back();
  }
  deepest_.push_back(burst.peak_depth_bytes);
  std::ranges::push_heap(deepest_, std::greater());
  const std::size_t named = std::min(burst.flows.size(), Burst::kProfileFlows);
  burst.profile.assign(burst.flows.size() > named ? named + 1 : named,
                       std::vector<std::uint32_t>(Burst::kProfileBins));
  const double bin_ns =
      std::max(1.0, static_cast<double>(burst.end_ns - burst.start_ns) / Burst::kProfileBins);
  for (const CourierRecord& packet : open.packets) {
    std::size_t flow = 0;
    while (flow < named && burst.flows[flow].flow != packet.flow) ++flow;
    const auto bin_of = [&](std::uint64_t time) {
      const double since = static_cast<double>(time - std::min(time, burst.start_ns));
      return std::min(Burst::kProfileBins, static_cast<std::size_t>(since / bin_ns + 0.5));
    };
    for (std::size_t bin = bin_of(packet.enqueued_ns()); bin < bin_of(packet.dequeued_ns); ++bin) {
      burst.profile[flow][bin] += packet.bytes();
    }
  }
}

void relate(std::span<Burst> bursts, std::uint64_t slack_ns) {
  struct Hash {
    std::size_t operator()(const FlowKey& flow) const { return flow.hash(); }
  };
  // By flow, in the order of their starts: only neighbours in time are compared.
  std::unordered_map<FlowKey, std::vector<std::size_t>, Hash> of_flow;
  std::vector<std::size_t> order(bursts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return bursts[i].start_ns; });
  for (const std::size_t i : order) {
    Burst& burst = bursts[i];
    for (const FlowShare& flow : std::span(burst.flows).first(burst.flows.size() - burst.victims)) {
      auto& earlier = of_flow[flow.flow];
      std::erase_if(earlier,
                    [&](std::size_t j) { return bursts[j].end_ns + slack_ns < burst.start_ns; });
      for (const std::size_t j : earlier) {
        if (bursts[j].queue == burst.queue) continue;
        burst.related.push_back(j);
        bursts[j].related.push_back(i);
      }
      earlier.push_back(i);
    }
  }
  for (Burst& burst : bursts) {
    std::ranges::sort(burst.related);
    burst.related.erase(std::unique(burst.related.begin(), burst.related.end()),
                        burst.related.end());
  }
}

}  // namespace greynic::burst
