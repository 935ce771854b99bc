#include <algorithm>

#include "network_parts.h"

namespace greynic::sharing {
namespace {

/// A receiver fetches the context alone, a sender also what it keeps to match acknowledgements.
constexpr double kReceiverShare = 0.5;
/// Packets that are ready for the wire at most, and as many again of a host that was stopped; all that leaves a busy
/// port waits for them.
constexpr std::uint32_t kReadyPackets = 64;
/// Payload of one sender that a switch holds before it tells that sender to stop, and to go on.
constexpr double kStopBytes = 800e3, kGoBytes = 700e3;
/// Packets that an RNIC holds while contexts are fetched for them; then its port is paused, until it holds
/// fewer again.
constexpr std::uint32_t kHeldPackets = 512, kResumePackets = 384;
/// READs of a QP that wait for their answers; what was posted after them waits as well.
constexpr std::uint32_t kReadsOfQp = 16;

}  // namespace

/// Takes its place among those that have turns, and asks for its context at once.
void Network::join(std::uint32_t e, bool answers) {
  End& end = ends_[e];
  Lane& lane = answers ? end.answers : end.asks;
  if (lane.in_ring || lane.messages.empty()) return;
  const Message& next = messages_[lane.messages.front()];
  if (!answers && is_read(next) && end.reads_open >= kReadsOfQp) return;
  if (!answers && next.fetched_at > now_) return at(next.fetched_at, Kind::kFetched, e);
  Host& host = hosts_[end.host];
  const std::uint32_t unit = end.place % rnic_.units;
  lane.in_ring = true;
  lane.context_at = host.contexts->touch(end.place) ? 0 : fetched(host, now_, 1);
  host.units[unit].ring.push_back(e << 1 | (answers ? 1U : 0U));
  begin_turn(end.host * rnic_.units + unit);
}

double Network::fetched(Host& host, double from, double share) {
  return host.fetcher_free = std::max(host.fetcher_free, from) + share * rnic_.contexts.fetch_ns;
}

void Network::begin_turn(std::uint32_t which) {
  Host& host = hosts_[which / rnic_.units];
  Unit& unit = host.units[which % rnic_.units];
  if (unit.busy || unit.ring.empty()) return;
  unit.busy = true;
  unit.packets_left = packets_of_turn(unit.ring.front());
  const double from = std::max({now_, unit.free, lane_of(unit.ring.front()).context_at});
  at(from + packet_ns(unit.ring.front()), Kind::kPacketDone, which);
}

std::uint32_t Network::packets_of_turn(std::uint32_t id) {
  return asks(id) ? 1 : times_[messages_[lane_of(id).messages.front()].demand].packets_of_turn();
}

/// What a packet takes of a unit.
double Network::packet_ns(std::uint32_t id) {
  const Times& times = times_[messages_[lane_of(id).messages.front()].demand];
  const std::uint32_t packets = asks(id) ? times.packets : times.turns * times.packets_of_turn();
  return std::min(rnic_.packet_ns, rnic_.units * times.unit_ns / packets);
}

/// When a packet more may be ready for the wire.
double Network::room_at(Host& host) {
  while (!host.ready.empty() && host.ready.front() <= now_) host.ready.pop_front();
  const std::size_t count = host.ready.size();
  return count < kReadyPackets ? 0 : host.ready[count - kReadyPackets];
}

/// A packet is ready; when it will have left.
double Network::send(Host& host, double ns) {
  host.wire_until = std::max(host.wire_until, now_) + ns;
  host.ready.push_back(host.wire_until);
  return host.wire_until;
}

/// Is the lane's next message a READ's request?
bool Network::asks(std::uint32_t id) {
  return (id & 1) == 0 && is_read(messages_[lane_of(id).messages.front()]);
}

/// A unit is done with a packet. Payload of a host that was stopped waits, and units wait behind that: so they take
/// turns by the packet, however many one has of a message.
void Network::packet_done(std::uint32_t which) {
  Host& host = hosts_[which / rnic_.units];
  Unit& unit = host.units[which % rnic_.units];
  if (host.waiting.size() >= kReadyPackets) return host.blocked.push_back(which);
  const std::uint32_t id = unit.ring.front();
  Lane& lane = lane_of(id);
  const std::uint32_t m = lane.messages.front();
  Message& message = messages_[m];
  const bool request = asks(id), last = --unit.packets_left == 0;
  if (last && !request) --message.turns_left;
  const Packet packet{m, message.turns_left, request, last};
  if (request || (!host.stopped && host.waiting.empty())) {
    transmit(host, packet);
  } else {
    host.waiting.push_back(packet);
  }
  unit.free = room_at(host);
  if (!last) return at(std::max(now_, unit.free) + packet_ns(id), Kind::kPacketDone, which);
  unit.ring.pop_front();
  unit.busy = false;
  lane.in_ring = false;
  if (request || message.turns_left == 0) lane.messages.pop_front();
  if (request) ++ends_[message.end].reads_open;
  join(id >> 1, (id & 1) != 0);
  begin_turn(which);
}

void Network::transmit(Host& host, const Packet& packet) {
  const Times& times = times_[messages_[packet.message].demand];
  const double ns =
      packet.request ? times.header_ns : times.wire_ns / times.turns / times.packets_of_turn();
  const double left = send(host, ns);
  if (!packet.last) return;
  at(left + times.trip_ns / 2, packet.request ? Kind::kAsked : Kind::kArrived, packet.message,
     packet.turns_left);
}

bool Network::goes_back(const Event& event) const {
  return event.kind == Kind::kWord ||
         (event.kind == Kind::kArrived && is_read(messages_[event.what]));
}

Host& Network::receiver(const Event& event) {
  const Message& message = messages_[event.what];
  return goes_back(event) ? asker_of(message) : asked(message);
}

Host& Network::sender(const Event& event) {
  const Message& message = messages_[event.what];
  return goes_back(event) ? asked(message) : asker_of(message);
}

double Network::wire_ns(const Event& event) const {
  const Times& times = times_[messages_[event.what].demand];
  return event.kind == Kind::kArrived ? times.wire_ns / times.turns : times.header_ns;
}

double Network::payload(const Event& event) const {
  const Message& message = messages_[event.what];
  return event.kind == Kind::kArrived ? bytes_of(message) / times_[message.demand].turns : 0;
}

/// Words queue at the port like all else.
void Network::at_port(const Event& event) {
  Host& from = sender(event);
  from.in_switch += payload(event);
  from.stopped = from.stopped || from.in_switch > kStopBytes;
  Host& host = receiver(event);
  host.port.push_back(event);
  leave_port(host);
}

void Network::leave_port(Host& host) {
  if (host.port_busy || host.port_paused || host.port.empty()) return;
  host.port_busy = true;
  // It came in while it was sent: on an idle port the last packet leaves as it comes.
  host.port_until = std::max(now_, host.port_until + wire_ns(host.port.front()));
  at(host.port_until, Kind::kLeft, static_cast<std::uint32_t>(&host - hosts_.data()));
}

void Network::left_port(Host& host) {
  const Event event = host.port.front();
  host.port.pop_front();
  host.port_busy = false;
  Host& from = sender(event);
  from.in_switch -= payload(event);
  from.least_in_switch = std::min(from.least_in_switch, from.in_switch);
  if (from.stopped && from.in_switch < kGoBytes) go_on(from);
  if (event.kind == Kind::kArrived) {
    arrived(host, event.what, event.turns_left);
  } else if (event.kind == Kind::kAsked) {
    heard(event.what);
  } else {
    done(event.what);
  }
  leave_port(host);
}

void Network::go_on(Host& host) {
  host.stopped = false;
  while (!host.waiting.empty()) {
    transmit(host, host.waiting.front());
    host.waiting.pop_front();
    if (host.blocked.empty()) continue;
    const std::uint32_t which = host.blocked.front();
    host.blocked.pop_front();
    packet_done(which);
  }
}

void Network::heard(std::uint32_t m) {
  const std::uint32_t far = ends_[messages_[m].end].far;
  ends_[far].answers.messages.push_back(m);
  join(far, true);
}

void Network::arrived(Host& host, std::uint32_t m, std::uint32_t turns_left) {
  const Message& message = messages_[m];
  const Times& times = times_[message.demand];
  const End& end = ends_[is_read(message) ? message.end : ends_[message.end].far];
  double from = now_;
  if (!host.contexts->touch(end.place)) from = fetched(host, from, kReceiverShare);
  host.taken_until = std::max(from, host.taken_until);
  bytes_[message.demand] += bytes_of(message) / times.turns;
  host.held += times.packets_of_turn();
  host.port_paused = host.port_paused || host.held >= kHeldPackets;
  at(host.taken_until, Kind::kTaken, m, turns_left);
}

void Network::taken(std::uint32_t m, std::uint32_t turns_left) {
  const Message& message = messages_[m];
  Host& taker = is_read(message) ? asker_of(message) : asked(message);
  const Times& times = times_[message.demand];
  taker.held -= times.packets_of_turn();
  if (taker.port_paused && taker.held < kResumePackets) {
    taker.port_paused = false;
    taker.port_until = std::max(taker.port_until, now_);
    leave_port(taker);
  }
  if (turns_left > 0) return;
  if (is_read(message)) return done(m);
  // Word of a WRITE goes back, behind what is ready for the wire there.
  at(send(taker, times.header_ns) + times.trip_ns / 2, Kind::kWord, m);
}

}  // namespace greynic::sharing
