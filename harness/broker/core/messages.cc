// Messages over UC and UD: what the network loses is lost, and nothing is posted again. A lane over
// them is made when the first connection asks for it. It has receives of its own, so however many
// come, no receive is missing that a stream was promised. What must not be lost, how such a connection
// opens and ends, goes over the first lane.

#include <algorithm>
#include <cerrno>

#include "core/engine.h"

namespace greynic::broker {
namespace {

constexpr std::uint32_t kReceiveBytes = kUcBytes + kRoutingHeaderBytes;

std::uint32_t most_bytes(Transport transport) {
  return transport == Transport::kUD ? kUdBytes : kUcBytes;
}

/// Copies from a ring to `to`, or into one.
void from_ring(const std::byte* ring, std::uint64_t bytes, std::uint64_t at,
               std::span<std::byte> to) {
  const std::uint64_t place = at % bytes;
  const std::size_t first = std::min<std::uint64_t>(to.size(), bytes - place);
  std::copy_n(ring + place, first, to.data());
  std::copy_n(ring, to.size() - first, to.data() + first);
}
void into_ring(std::byte* ring, std::uint64_t bytes, std::uint64_t at,
               std::span<const std::byte> from) {
  const std::uint64_t place = at % bytes;
  const std::size_t first = std::min<std::uint64_t>(from.size(), bytes - place);
  std::copy_n(from.data(), first, ring + place);
  std::copy_n(from.data() + first, from.size() - first, ring);
}

}  // namespace

void Engine::add_message_lanes(Link& link) {
  for (const Transport transport : {Transport::kUC, Transport::kUD}) {
    link.lanes.push_back(std::make_unique<Lane>(options_.segment_bytes));
    Lane& lane = *link.lanes.back();
    lane.index = static_cast<std::uint16_t>(link.lanes.size() - 1);
    lane.transport = transport;
    lane.phase = Lane::Phase::kUnused;
  }
}

/// A message names its receiver by immediate data.
bool Engine::can_carry(Transport transport) const {
  if (transport == Transport::kRC) return true;
  return device_.has_immediate() &&
         (transport == Transport::kUC || device_.mtu_bytes() >= kUdBytes);
}

Lane& Engine::lane_over(const Link& link, Transport transport) const {
  return *link.lanes[link.lanes.size() - (transport == Transport::kUC ? 2 : 1)];
}

Result<void> Engine::give_receives(const Link& link, Lane& lane) {
  std::unique_ptr<Block>& block = message_blocks_[{link.peer, lane.index}];
  if (block == nullptr) {
    auto made = make_block(std::size_t{kMessageReceives} * kReceiveBytes);
    if (!made) return pass_on(made);
    block = std::move(*made);
  }
  std::vector<std::uint64_t> ids;
  std::vector<Piece> pieces;
  for (std::uint32_t i = 0; i < kMessageReceives; ++i) {
    ids.push_back(kMessageReceive | i);
    pieces.push_back({block->memory.address + std::uint64_t{i} * kReceiveBytes, kReceiveBytes,
                      block->memory.local_key});
  }
  (void)device_.post_receives(ids, pieces, lane.qp);
  return {};
}

/// The length was written by the application, so it is read once and held against all that it could
/// break.
std::uint64_t Engine::send_message(Lane& lane, Connection& connection) {
  const App& app = apps_.at(connection.app);
  const Extent& ring = connection.rings.send;
  const std::byte* data = app.segment.data() + ring.offset;
  const std::uint64_t waiting = sendable(connection);
  std::uint32_t bytes = 0;
  from_ring(data, ring.bytes, connection.posted, std::as_writable_bytes(std::span(&bytes, 1)));
  if (bytes == 0 || bytes > most_bytes(connection.transport) || waiting < kLengthBytes + bytes) {
    ++counters_.guilty;
    abort(connection, EMSGSIZE);
    return kLengthBytes;
  }
  Sent sent{.kind = Sent::Kind::kStream, .connection = connection.self};
  sent.bytes = kLengthBytes + bytes;
  sent.work.verb = Verb::kSend;
  sent.work.has_immediate = true;
  sent.work.immediate = connection.other;
  const std::uint64_t at = (connection.posted + kLengthBytes) % ring.bytes;
  const std::uint64_t base = app.memory.address + ring.offset;
  const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, ring.bytes - at));
  sent.work.pieces[0] = {base + at, first, app.memory.local_key};
  if (first < bytes) {
    sent.work.pieces[1] = {base, bytes - first, app.memory.local_key};
    sent.work.piece_count = 2;
  }
  ++counters_.messages;
  connection.posted += sent.bytes;
  stage(lane, sent);
  return bytes;
}

/// Says that no more comes, once all has left.
void Engine::finish_messages(Connection& connection) {
  const bool all_left = connection.posted == connection.stream.written && connection.under_way == 0;
  const bool open = connection.phase == Connection::Phase::kOpen;
  if (!open || !connection.wants_finish || connection.finish_sent || !all_left) return;
  connection.finish_sent = true;
  Link& link = *link_of(connection.peer);
  link.controls.push_back({.kind = Control::Kind::kFinish, .to = connection.other});
  mark(*link.lanes[0]);
}

void Engine::on_message_receive(const Completion& one) {
  const auto found = by_qp_.find(one.qp);
  const std::uint64_t index = one.id & ~kMessageReceive;
  if (found == by_qp_.end() || one.status != Status::kDone || index >= kMessageReceives) return;
  Link& link = *found->second.link;
  const Lane& lane = *found->second.lane;
  if (lane.transport == Transport::kRC) return;  // no receive of such a lane
  const Block& block = *message_blocks_.at({link.peer, lane.index});
  const std::uint32_t skipped = lane.transport == Transport::kUD ? kRoutingHeaderBytes : 0;
  if (one.has_immediate && one.bytes > skipped && one.bytes <= kReceiveBytes) {
    on_lost_or_whole(
        link, lane.transport, one.immediate,
        std::span(block.bytes).subspan(index * kReceiveBytes + skipped, one.bytes - skipped));
  } else {
    ++counters_.garbled;
  }
  const Piece piece{block.memory.address + index * kReceiveBytes, kReceiveBytes,
                    block.memory.local_key};
  (void)device_.post_receives(std::span(&one.id, 1), std::span(&piece, 1), lane.qp);
}

/// Into the ring of its connection, or away: a stranger may have sent it, or nobody has made room.
void Engine::on_lost_or_whole(Link& link, Transport transport, std::uint32_t to,
                              std::span<const std::byte> payload) {
  Connection* connection = connections_.find(to);
  if (connection == nullptr) return void(++counters_.stale);
  if (connection->peer != link.peer || connection->transport != transport) {
    return void(++counters_.forged);
  }
  const bool open = connection->phase == Connection::Phase::kOpen && !connection->released;
  if (!open || connection->finish_received) return void(++counters_.stale);
  StreamState& stream = connection->stream;
  const Extent& ring = connection->rings.receive;
  const std::uint64_t room = ring.bytes - (stream.received - stream.consumed);
  if (kLengthBytes + payload.size() > room) return void(++counters_.no_room);
  std::byte* data = apps_.at(connection->app).segment.data() + ring.offset;
  const auto bytes = static_cast<std::uint32_t>(payload.size());
  into_ring(data, ring.bytes, stream.received, std::as_bytes(std::span(&bytes, 1)));
  into_ring(data, ring.bytes, stream.received + kLengthBytes, payload);
  stream.received += kLengthBytes + payload.size();
  owner_.on_received(connection->app, to, stream.received);
}

}  // namespace greynic::broker
