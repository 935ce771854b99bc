// Lanes come up, fail and come up again. Each end drains its old QP, counts the messages that it
// has received on the lane, and tells the other that count with the address of its new QP. What the
// other end has is done; the rest is posted again, in order. So each message arrives once.

#include <algorithm>
#include <cerrno>

#include "core/engine.h"

namespace greynic::broker {
namespace {

/// A request that still has to be done by a connection that is cut must not be posted again.
bool keeps(const Sent& sent) {
  return sent.kind == Sent::Kind::kControl || sent.kind == Sent::Kind::kCredit;
}

}  // namespace

Result<void> Engine::open_lane(Link& link, Lane& lane) {
  if (lane.transport == Transport::kRC) {
    std::unique_ptr<Block>& slots = slots_[{link.peer, lane.index}];
    if (slots == nullptr) {
      auto made = make_block(std::size_t{options_.send_depth} * kSlotBytes);
      if (!made) return pass_on(made);
      slots = std::move(*made);
    }
  }
  auto qp = device_.create_qp(lane.transport, options_.send_depth, kMessageReceives);
  if (!qp) return pass_on(qp);
  lane.qp = *qp;
  lane.phase = Lane::Phase::kCalling;
  lane.far_ready = false;
  by_qp_[*qp] = {&link, &lane};
  say_down(link, lane);
  return {};
}

void Engine::say_down(Link& link, Lane& lane) {
  LaneCall call;
  call.lane = lane.index;
  call.lane_count = static_cast<std::uint16_t>(link.lanes.size());
  call.epoch = lane.epoch;
  call.credits = options_.receive_credits;
  call.received = lane.received;
  call.address = device_.address_of(lane.qp);
  owner_.call_peer(link.peer, encode(call));
}

void Engine::on_qp_error(QpNumber qp) {
  const auto found = by_qp_.find(qp);
  if (found == by_qp_.end()) return;
  const Place place = found->second;
  break_lane(*place.lane);
}

void Engine::on_failure(Lane& lane, const Completion& completion) {
  if (completion.status == Status::kGuilty) {
    for (Sent& sent : lane.sent) {
      if (sent.work.id == completion.id) sent.guilty = true;
    }
  }
  break_lane(lane);
}

void Engine::break_lane(Lane& lane) {
  const auto phase = lane.phase;
  using Phase = Lane::Phase;
  if (phase == Phase::kUnused || phase == Phase::kDraining || phase == Phase::kCalling) return;
  lane.phase = Lane::Phase::kDraining;
  device_.to_error(lane.qp);
}

void Engine::on_drained(QpNumber qp) {
  const auto found = by_qp_.find(qp);
  if (found == by_qp_.end() || found->second.lane->phase != Lane::Phase::kDraining) return;
  Link& link = *found->second.link;
  Lane& lane = *found->second.lane;
  device_.destroy(lane.qp);
  by_qp_.erase(lane.qp);
  if (lane.dirty) {
    std::erase_if(dirty_, [&](const Place& place) { return place.lane == &lane; });
    lane.dirty = false;
  }
  lane.qp = 0;
  ++lane.epoch;
  ++counters_.rebuilds;
  if (!open_lane(link, lane)) {
    return owner_.on_peer_broken(link.peer, "a shared QP failed and no new one can be made");
  }
  try_join(link, lane);
}

void Engine::on_peer_call(PeerId peer, std::span<const std::byte> bytes) {
  Link* link = link_of(peer);
  if (link == nullptr) return;
  const auto call = decode_lane_call(bytes);
  if (!call || call->lane_count != link->lanes.size()) {
    return owner_.on_peer_broken(peer, call ? "it has another count of lanes; give both brokers "
                                              "the same numbers of QPs"
                                            : "its call for a lane is garbled");
  }
  Lane& lane = *link->lanes[call->lane];
  if (call->kind == LaneCall::Kind::kReady) {
    if (call->epoch != lane.epoch) return;
    lane.far_ready = true;
    return become_ready(lane);
  }
  if (lane.phase == Lane::Phase::kUnused &&
      !(can_carry(lane.transport) && open_lane(*link, lane))) {
    return owner_.on_peer_broken(peer, "it asks for a QP that this RNIC does not carry");
  }
  const bool calling = lane.phase == Lane::Phase::kCalling;
  if (call->epoch == lane.epoch + 1 && !calling) {
    lane.far_call = call;
    return break_lane(lane);
  }
  if (call->epoch != lane.epoch || !calling) {
    return owner_.on_peer_broken(peer, "its lanes are out of step");
  }
  lane.far_call = call;
  try_join(*link, lane);
}

void Engine::try_join(Link& link, Lane& lane) {
  if (!lane.far_call || lane.far_call->epoch != lane.epoch) return;
  const LaneCall far = *lane.far_call;
  lane.far_call.reset();
  if (!settle(link, lane, far.received)) {
    return owner_.on_peer_broken(link.peer, "it has received what was never sent");
  }
  if (!device_.connect(lane.qp, far.address)) {
    return owner_.on_peer_broken(link.peer, "the address of its QP cannot be reached");
  }
  if (lane.transport != Transport::kRC && !give_receives(link, lane)) {
    return owner_.on_peer_broken(link.peer, "there is no memory for its messages");
  }
  link.credits = far.credits;
  lane.phase = Lane::Phase::kJoining;
  LaneCall ready;
  ready.kind = LaneCall::Kind::kReady;
  ready.lane = lane.index;
  ready.lane_count = static_cast<std::uint16_t>(link.lanes.size());
  ready.epoch = lane.epoch;
  owner_.call_peer(link.peer, encode(ready));
  become_ready(lane);
}

bool Engine::settle(Link& link, Lane& lane, std::uint64_t received) {
  if (received > lane.numbered) return false;
  std::deque<Sent> rest;
  std::deque<Sent> all = std::exchange(lane.sent, {});
  const bool may_be_lost = lane.transport != Transport::kRC;
  std::size_t arrived = 0;  // requests up to the last message that the other end has
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].numbered && all[i].sequence <= received) arrived = i + 1;
  }
  std::vector<Sent> finished;
  for (std::size_t i = 0; i < all.size(); ++i) {
    // What went over UC or UD is not posted again. The far RNIC works in order: what was written before a message that arrived is there. What
    // was read may have been lost on the way back.
    const bool there = i < arrived && all[i].work.verb != Verb::kRead;
    if (there || (may_be_lost && !all[i].guilty)) {
      finished.push_back(std::move(all[i]));
      continue;
    }
    rest.push_back(std::move(all[i]));
  }
  lane.sent = std::move(rest);
  const std::vector<VirtualQpn> guilty = drop_guilty(link, lane);
  lane.numbered = received;
  for (Sent& sent : lane.sent) {
    if (sent.numbered) sent.sequence = ++lane.numbered;
    sent.work.id = std::uint64_t{sent.connection} << 32 | lane.next_id++;
  }
  lane.posted = 0;
  counters_.replayed += lane.sent.size();
  for (const Sent& sent : finished) done(lane, sent);
  for (const VirtualQpn number : guilty) {
    ++counters_.guilty;
    if (Connection* connection = connections_.find(number)) abort(*connection, EFAULT);
  }
  return true;
}

std::vector<VirtualQpn> Engine::drop_guilty(Link& link, Lane& lane) {
  std::vector<VirtualQpn> guilty;
  for (const Sent& sent : lane.sent) {
    if (sent.guilty && sent.connection != 0) guilty.push_back(sent.connection);
  }
  std::deque<Sent> rest;
  for (Sent& sent : lane.sent) {
    const bool cut = std::find(guilty.begin(), guilty.end(), sent.connection) != guilty.end();
    if (!cut || keeps(sent)) {
      rest.push_back(std::move(sent));
      continue;
    }
    if (sent.credited) --link.used;  // it never arrived, so nobody gives the receive back
    give_back(lane, sent);
  }
  lane.sent = std::move(rest);
  return guilty;
}

void Engine::become_ready(Lane& lane) {
  if (lane.phase != Lane::Phase::kJoining || !lane.far_ready) return;
  lane.phase = Lane::Phase::kReady;
  mark(lane);
}

}  // namespace greynic::broker
