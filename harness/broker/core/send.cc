// What goes out: whose turn it is, by which verb, and what becomes of it.

#include <algorithm>
#include <cstring>

#include "core/engine.h"

namespace greynic::broker {
namespace {

/// Receives of the peer that data may not use: control must pass when data cannot.
constexpr std::uint64_t kControlReserve = 16;
/// Slots of the send queue that data may not use; a piece takes up to two.
constexpr std::size_t kDataSlots = 8, kControlSlots = 3;
constexpr std::size_t kRecordsOfMessage = 15;
/// One request in so many asks for a completion.
constexpr std::size_t kSignalEvery = 8;
constexpr std::uint64_t kRecordCost = kControlBytes;
/// So many pieces of so many bytes at most fill no ring and no lane, so nobody waits for their completions.
constexpr std::uint64_t kQuietBytes = 256;
constexpr std::size_t kQuietPieces = 8;
/// With more lanes, looking at each takes longer than a completion that nobody waits for.
constexpr std::size_t kFewLanes = 32;

std::uint64_t until_wrap(std::uint64_t position, std::uint64_t bytes) {
  return bytes - position % bytes;
}

std::uint32_t per_mille(double share) {
  return static_cast<std::uint32_t>(std::clamp(share, 0.0, 1.0) * 1000);
}

}  // namespace

void Engine::mark(Lane& lane) {
  if (lane.dirty) return;
  const auto place = by_qp_.find(lane.qp);
  if (place == by_qp_.end()) return;  // between two QPs: become_ready() marks it
  lane.dirty = true;
  dirty_.push_back(place->second);
}

VerbRule Engine::rule_of(const Link& link, const Connection& connection) const {
  return connection.rings.rule == VerbRule::kAuto ? link.choice.rule() : connection.rings.rule;
}

std::uint64_t Engine::sendable(const Connection& connection) const {
  if (connection.offered > 0) return 0;
  const std::uint64_t waiting = connection.stream.written - connection.posted;
  if (!connection.is_stream()) return waiting;
  const std::uint64_t under_way = connection.posted - connection.far_consumed;
  if (under_way >= connection.far_ring.bytes) return 0;
  const std::uint64_t most = std::min(waiting, connection.far_ring.bytes - under_way);
  const Link& link = *link_of(connection.peer);
  // What is read acknowledges all that was sent before it, so that must be through.
  const bool read = most > options_.receive_bytes && rule_of(link, connection) == VerbRule::kRead;
  return read && connection.under_way > 0 ? 0 : most;
}

bool Engine::has_work(const Connection& connection) const {
  if (connection.phase != Connection::Phase::kOpen) return false;
  const auto& pull = connection.pull;
  if (!connection.controls.empty() || !connection.transfers.empty()) return true;
  if (pull && pull->posted < pull->range.bytes) return true;
  if (sendable(connection) > 0) return true;
  if (!connection.is_stream()) return false;
  const bool all_sent = connection.posted == connection.stream.written && connection.offered == 0 &&
                        connection.transfers_open == 0 && !pull;
  return connection.wants_finish && !connection.finish_sent && all_sent;
}

std::uint16_t Engine::choose_lane(const Link& link, const Connection& connection) const {
  if (!connection.is_stream()) return lane_over(link, connection.transport).index;
  std::uint64_t waiting = connection.stream.written - connection.posted;
  if (connection.pull) waiting += connection.pull->range.bytes;
  for (const Transfer& transfer : connection.transfers) waiting += transfer.bytes;
  const bool bulk = waiting > options_.bulk_bytes && options_.bulk_lanes > 0;
  const std::uint32_t spread = connection.self & VirtualQpns<Connection>::kMost;
  if (!bulk) return static_cast<std::uint16_t>(spread % options_.latency_lanes);
  return static_cast<std::uint16_t>(options_.latency_lanes + spread % options_.bulk_lanes);
}

void Engine::touch(Connection& connection) {
  if (!connection.is_stream()) finish_messages(connection);
  if (connection.queued || !has_work(connection)) return;
  Link& link = *link_of(connection.peer);
  // Only when nothing is under way: two lanes keep no order between each other.
  if (connection.under_way == 0) {
    connection.lane = choose_lane(link, connection);
    Lane& chosen = *link.lanes[connection.lane];
    // Where no more QPs can be made, the first lane carries it.
    if (chosen.phase == Lane::Phase::kUnused && !open_lane(link, chosen)) connection.lane = 0;
  }
  Lane& lane = *link.lanes[connection.lane];
  lane.turns.add(connection.app, connection.self);
  connection.queued = true;
  mark(lane);
}

bool Engine::has_room(const Lane& lane, std::size_t reserve) const {
  const bool has_slot = lane.transport != Transport::kRC || !lane.free_slots.empty();
  return lane.sent.size() + reserve <= options_.send_depth && has_slot;
}

bool Engine::may_pay(const Link& link, std::uint64_t reserve) const {
  return link.used - link.returned + reserve < link.credits;
}

void Engine::pay(Link& link, Lane& lane, Sent& sent) {
  sent.numbered = sent.credited = true;
  sent.sequence = ++lane.numbered;
  ++link.used;
}

void Engine::flush() {
  post_receives(kRefill);
  while (!dirty_.empty()) {
    pumped_.clear();
    pumped_.swap(dirty_);
    for (const Place& place : pumped_) {
      place.lane->dirty = false;
      pump(*place.link, *place.lane);
    }
  }
}

void Engine::pump(Link& link, Lane& lane) {
  if (lane.phase != Lane::Phase::kReady) return;
  if (lane.index == 0 && link.credit_due) send_credit(link, lane);
  if (lane.index == 0) send_controls(link, lane);
  while (has_room(lane, kDataSlots) && lane.in_flight < options_.in_flight_bytes) {
    const auto turn = lane.turns.next();
    if (!turn) break;
    Connection* connection = connections_.find(turn->second);
    if (connection == nullptr || !connection->queued) continue;  // it ended while it waited
    connection->queued = false;
    if (!has_work(*connection)) continue;
    ++(lane.index < options_.latency_lanes ? counters_.small_turns : counters_.bulk_turns);
    const std::uint64_t cost = send_next(link, lane, *connection);
    lane.turns.charge(turn->first, static_cast<std::int64_t>(cost));
    if (cost == 0) {  // the peer's receives are used up: on_credit() comes back here
      lane.turns.add(turn->first, turn->second);
      connection->queued = true;
      break;
    }
    touch(*connection);
  }
  post_staged(lane);
}

void Engine::send_controls(Link& link, Lane& lane) {
  while (!link.controls.empty() && has_room(lane, kControlSlots) && may_pay(link, 0)) {
    const std::size_t count = std::min(link.controls.size(), kRecordsOfMessage);
    const auto end = link.controls.begin() + static_cast<std::ptrdiff_t>(count);
    const std::vector<Control> records(link.controls.begin(), end);
    link.controls.erase(link.controls.begin(), end);
    Sent sent = message(lane, link, 0, 0, records);
    pay(link, lane, sent);
    stage(lane, sent);
  }
}

void Engine::send_credit(Link& link, Lane& lane) {
  if (!has_room(lane, 1)) return;
  link.credit_due = false;
  post_receives(1);  // the peer is told of them now
  link.told_taken = link.taken;
  const Control control{.kind = Control::Kind::kCredit,
                        .port = static_cast<std::uint16_t>(per_mille(load_.processor)),
                        .from = per_mille(load_.memory),
                        .value = link.taken};
  Sent sent = message(lane, link, 0, 0, std::span(&control, 1));
  sent.kind = Sent::Kind::kCredit;
  sent.quiet = true;
  sent.numbered = true;  // but not paid for
  sent.sequence = ++lane.numbered;
  stage(lane, sent);
}

Sent Engine::message(Lane& lane, const Link& link, std::uint32_t to, std::uint32_t written,
                     std::span<const Control> records) {
  const Block& block = *slots_.at({link.peer, lane.index});
  const std::int32_t slot = lane.free_slots.back();
  lane.free_slots.pop_back();
  const std::uint64_t at = static_cast<std::uint64_t>(slot) * kSlotBytes;
  std::byte* bytes = const_cast<std::byte*>(block.bytes.data()) + at;
  std::size_t used = 0;
  if (!device_.has_immediate()) {
    const Prefix prefix{to, written};
    std::memcpy(bytes, &prefix, kPrefixBytes);
    used = kPrefixBytes;
  }
  for (const Control& record : records) {
    encode(record, std::span<std::byte, kControlBytes>(bytes + used, kControlBytes));
    used += kControlBytes;
  }
  counters_.controls += records.size();
  Sent sent;
  sent.slot = slot;
  sent.work.pieces[0] = {block.memory.address + at, static_cast<std::uint32_t>(used),
                         block.memory.local_key};
  sent.work.has_immediate = device_.has_immediate();
  sent.work.immediate = to;
  return sent;
}

std::uint64_t Engine::send_next(Link& link, Lane& lane, Connection& connection) {
  if (!connection.is_stream()) return send_message(lane, connection);
  if (!connection.controls.empty()) return send_record(link, lane, connection);
  if (connection.pull && connection.pull->posted < connection.pull->range.bytes) {
    return send_pull(lane, connection);
  }
  if (!connection.transfers.empty()) return send_transfer(lane, connection);
  if (sendable(connection) > 0) return send_stream(link, lane, connection);
  connection.controls.push_back({.kind = Control::Kind::kFinish, .to = connection.other});
  return send_record(link, lane, connection);
}

std::uint64_t Engine::send_record(Link& link, Lane& lane, Connection& connection) {
  if (!may_pay(link, kControlReserve / 2)) return 0;
  const Control record = connection.controls.front();
  connection.controls.pop_front();
  Sent sent = message(lane, link, 0, 0, std::span(&record, 1));
  sent.kind = Sent::Kind::kRecord;
  sent.connection = connection.self;
  sent.record = record.kind;
  if (record.kind == Control::Kind::kFinish) connection.finish_sent = true;
  pay(link, lane, sent);
  stage(lane, sent);
  return kRecordCost;
}

std::uint64_t Engine::send_pull(Lane& lane, Connection& connection) {
  Connection::Pull& pull = *connection.pull;
  const App& app = apps_.at(connection.app);
  const Extent& ring = connection.rings.receive;
  const std::uint64_t position = connection.stream.received - pull.done + pull.posted;
  const auto bytes = static_cast<std::uint32_t>(
      std::min({pull.range.bytes - pull.posted, std::uint64_t{options_.segment_bytes},
                until_wrap(position, ring.bytes)}));
  Sent sent{.kind = Sent::Kind::kPull, .connection = connection.self, .bytes = bytes};
  sent.work.verb = Verb::kRead;
  sent.work.pieces[0] = {app.memory.address + ring.offset + position % ring.bytes, bytes,
                         app.memory.local_key};
  sent.work.remote_address = pull.range.address + pull.posted;
  sent.work.remote_key = pull.range.key;
  pull.posted += bytes;
  stage(lane, sent);
  return bytes;
}

std::uint64_t Engine::send_transfer(Lane& lane, Connection& connection) {
  Transfer& transfer = connection.transfers.front();
  const App& app = apps_.at(connection.app);
  const auto bytes = static_cast<std::uint32_t>(
      std::min(transfer.bytes - transfer.posted, std::uint64_t{options_.segment_bytes}));
  Sent sent{.kind = Sent::Kind::kTransfer, .connection = connection.self, .bytes = bytes};
  sent.work.verb = transfer.verb;
  sent.work.pieces[0] = {app.memory.address + transfer.own_offset + transfer.posted, bytes,
                         app.memory.local_key};
  sent.work.remote_address = connection.far_exposed.address + transfer.far_offset + transfer.posted;
  sent.work.remote_key = connection.far_exposed.key;
  sent.cookie = transfer.cookie;
  transfer.posted += bytes;
  sent.last = transfer.posted == transfer.bytes;
  if (sent.last) connection.transfers.pop_front();
  stage(lane, sent);
  return bytes;
}

std::uint64_t Engine::send_stream(Link& link, Lane& lane, Connection& connection) {
  if (!may_pay(link, kControlReserve)) return 0;
  const Control::Range& far = connection.far_ring;
  const std::uint64_t position = connection.posted;
  const std::uint64_t waiting = connection.stream.written - position;
  const Source source = source_of(connection, position);
  std::uint64_t bytes = std::min(sendable(connection), source.bytes);
  const std::uint64_t small = options_.receive_bytes - (device_.has_immediate() ? 0 : kPrefixBytes);
  const VerbRule rule = bytes <= small ? VerbRule::kSend : rule_of(link, connection);
  if (rule == VerbRule::kRead) {
    ++counters_.chose_read;
    connection.posted += bytes;
    connection.offered = bytes;
    connection.controls.push_back(
        {.kind = Control::Kind::kOffer,
         .to = connection.other,
         .ring = {source.memory.address, bytes, source.memory.remote_key}});
    note(link, lane, connection, Verb::kRead, bytes, waiting, source);
    return send_record(link, lane, connection);
  }
  const bool write = rule == VerbRule::kWrite;
  ++(write ? counters_.chose_write : counters_.chose_send);
  bytes = write ? std::min({bytes, std::uint64_t{options_.segment_bytes},
                            until_wrap(position, far.bytes)})
                : std::min(bytes, small);
  note(link, lane, connection, write ? Verb::kWrite : Verb::kSend, bytes, waiting, source);
  const Piece piece{source.memory.address, static_cast<std::uint32_t>(bytes),
                    source.memory.local_key};
  Sent data{.kind = Sent::Kind::kStream, .connection = connection.self, .bytes = piece.bytes};
  data.work.verb = Verb::kWrite;
  data.work.pieces[0] = piece;
  data.work.remote_address = far.address + position % far.bytes;
  data.work.remote_key = far.key;
  if (device_.has_immediate()) {
    data.work.verb = write ? Verb::kWrite : Verb::kSend;
    data.work.has_immediate = true;
    data.work.immediate = connection.other;
  } else {
    // A WRITE tells nobody, so a message follows that does; a SEND has its prefix before it.
    Sent prefix = message(lane, link, connection.other, write ? piece.bytes : 0, {});
    if (write) {
      data.kind = Sent::Kind::kWritten;
      data.bytes = 0;
      stage(lane, data);
    } else {
      prefix.work.pieces[1] = piece;
      prefix.work.piece_count = 2;
    }
    prefix.kind = Sent::Kind::kStream;
    prefix.connection = connection.self;
    prefix.bytes = piece.bytes;
    data = prefix;
  }
  // Before bytes are read all that was sent must be through.
  data.quiet = bytes <= kQuietBytes && rule_of(link, connection) != VerbRule::kRead;
  connection.posted += bytes;
  pay(link, lane, data);
  stage(lane, data);
  return bytes;
}

void Engine::stage(Lane& lane, Sent sent) {
  sent.work.id = std::uint64_t{sent.connection} << 32 | lane.next_id++;
  lane.in_flight += sent.bytes;
  if (Connection* connection = connections_.find(sent.connection)) ++connection->under_way;
  lane.sent.push_back(std::move(sent));
}

void Engine::post_staged(Lane& lane) {
  if (lane.posted == lane.sent.size()) return;
  std::vector<Work>& list = posted_;
  list.clear();
  // Who asked for a transfer waits for word of it, and what is under way is replaced only then. A stream goes on
  // meanwhile, and with a processor for all each completion costs it a turn.
  std::uint64_t untold = 0;
  for (std::size_t i = lane.posted; i < lane.sent.size(); ++i) {
    list.push_back(lane.sent[i].work);
    if (lane.sent[i].kind == Sent::Kind::kTransfer) untold += lane.sent[i].bytes;
    const bool many = untold > 0 && untold * kSignalEvery >= options_.in_flight_bytes;
    list.back().signaled = i + 1 == lane.sent.size() || i % kSignalEvery == 0 || many;
    if (list.back().signaled) untold = 0;
    ++counters_.verbs[static_cast<std::size_t>(list.back().verb)];
  }
  ++counters_.doorbells;
  // Fewer are taken when the QP has just failed: its flushed completions are on their way.
  lane.posted += device_.post(lane.qp, list);
}

Core::Awaits Engine::awaits() const {
  if (by_qp_.size() > kFewLanes) return Awaits::kNow;
  std::size_t quiet = 0;
  for (const auto& [qp, place] : by_qp_) {
    for (const Sent& sent : place.lane->sent) {
      if (!sent.quiet || ++quiet > kQuietPieces) return Awaits::kNow;
    }
  }
  return quiet == 0 ? Awaits::kNothing : Awaits::kSoon;
}

void Engine::give_back(Lane& lane, const Sent& sent) {
  if (sent.slot >= 0) lane.free_slots.push_back(sent.slot);
  lane.in_flight -= sent.bytes;
  if (Connection* connection = connections_.find(sent.connection)) --connection->under_way;
}

void Engine::complete(Lane& lane, std::uint32_t id) {
  // Requests of a QP complete in order, so this one speaks for those before it.
  while (!lane.sent.empty() && lane.posted > 0) {
    const auto front = static_cast<std::uint32_t>(lane.sent.front().work.id);
    if (static_cast<std::int32_t>(id - front) < 0) break;
    const Sent sent = lane.sent.front();
    lane.sent.pop_front();
    --lane.posted;
    done(lane, sent);
  }
  mark(lane);
}

void Engine::done(Lane& lane, const Sent& sent) {
  give_back(lane, sent);
  Connection* connection = connections_.find(sent.connection);
  if (connection == nullptr) return;
  StreamState& stream = connection->stream;
  const bool open = connection->phase == Connection::Phase::kOpen;
  if (open && sent.kind == Sent::Kind::kStream) {
    acknowledge(*connection, sent.bytes);
  } else if (open && sent.kind == Sent::Kind::kPull) {
    Connection::Pull& pull = *connection->pull;
    pull.done += sent.bytes;
    stream.received += sent.bytes;
    if (pull.done == pull.range.bytes) {
      connection->controls.push_back(
          {.kind = Control::Kind::kTaken, .to = connection->other, .value = pull.range.bytes});
      connection->pull.reset();
    }
    owner_.on_received(connection->app, connection->self, stream.received);
  } else if (open && sent.last) {
    --connection->transfers_open;
    owner_.on_transferred(connection->app, connection->self, sent.cookie);
  }
  touch(*connection);
  settle_ending(*connection);
  if (Connection* still = connections_.find(sent.connection)) finish_if_over(*still);
}

}  // namespace greynic::broker
