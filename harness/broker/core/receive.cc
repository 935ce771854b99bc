// What comes in: messages of peers, none of which is believed before it is checked.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/engine.h"

namespace greynic::broker {
namespace {

/// Error numbers come from a peer.
int plain_error(std::uint64_t value) {
  return value > 0 && value < 134 ? static_cast<int>(value) : ECONNRESET;
}

}  // namespace

void Engine::on_completions(std::span<const Completion> list) {
  for (const Completion& one : list) {
    if (one.is_receive) {
      on_receive(one);
      continue;
    }
    const auto found = by_qp_.find(one.qp);
    if (found == by_qp_.end()) continue;  // of a QP that is gone
    const Place place = found->second;
    if (one.status == Status::kDone) {
      complete(*place.lane, static_cast<std::uint32_t>(one.id));
    } else {
      on_failure(*place.lane, one);
    }
  }
}

void Engine::on_receive(const Completion& one) {
  if ((one.id & kMessageReceive) != 0) return on_message_receive(one);
  if (one.id >= receives_.size()) return;
  used_receives_.push_back(one.id);
  const auto found = by_qp_.find(one.qp);
  if (one.status != Status::kDone || found == by_qp_.end()) return;
  const Place place = found->second;
  if (place.lane->transport != Transport::kRC) return;  // its receives are its own
  ++place.lane->received;
  std::span<const std::byte> payload(receive_data_[one.id],
                                     std::min(one.bytes, options_.receive_bytes));
  if (one.written) {
    on_message(*place.link, one.immediate, {}, one.bytes);
  } else if (one.has_immediate) {
    on_message(*place.link, one.immediate, payload, 0);
  } else if (payload.size() >= kPrefixBytes) {
    Prefix prefix;
    std::memcpy(&prefix, payload.data(), kPrefixBytes);
    on_message(*place.link, prefix.to, payload.subspan(kPrefixBytes), prefix.written);
  } else {
    ++counters_.garbled;
  }
}

void Engine::on_message(Link& link, std::uint32_t to, std::span<const std::byte> payload,
                        std::uint32_t written) {
  if (to != 0) {
    ++link.taken;
    on_data(link, to, payload, written);
  } else {
    const bool whole = !payload.empty() && payload.size() % kControlBytes == 0;
    const auto first = whole ? decode(payload.first(kControlBytes)) : std::nullopt;
    const bool unpaid =
        payload.size() == kControlBytes && first && first->kind == Control::Kind::kCredit;
    if (!unpaid) ++link.taken;
    if (!whole) ++counters_.garbled;
    for (; whole && !payload.empty(); payload = payload.subspan(kControlBytes)) {
      const auto control = decode(payload.first(kControlBytes));
      if (control) on_control(link, *control);
      if (!control) ++counters_.garbled;
    }
  }
  if (link.taken - link.told_taken >= options_.receive_credits / 4) {
    link.credit_due = true;
    mark(*link.lanes[0]);
  }
}

void Engine::on_data(Link& link, std::uint32_t to, std::span<const std::byte> payload,
                     std::uint32_t written) {
  Connection* connection = connections_.find(to);
  if (connection == nullptr) return void(++counters_.stale);
  if (connection->peer != link.peer || !connection->is_stream()) return void(++counters_.forged);
  if (connection->phase != Connection::Phase::kOpen) return void(++counters_.stale);
  StreamState& stream = connection->stream;
  const Extent& ring = connection->rings.receive;
  const std::uint64_t bytes = payload.size() + written;
  const bool fits = bytes <= ring.bytes - (stream.received - stream.consumed);
  if (!fits || bytes == 0 || connection->pull || connection->finish_received) {
    ++counters_.garbled;
    return abort(*connection, EPROTO);
  }
  if (connection->released) return abort(*connection, ECONNRESET);
  std::byte* data = apps_.at(connection->app).segment.data() + ring.offset;
  for (std::size_t done = 0; done < payload.size();) {
    const std::uint64_t at = (stream.received + done) % ring.bytes;
    const std::size_t piece = std::min<std::size_t>(payload.size() - done, ring.bytes - at);
    std::memcpy(data + at, payload.data() + done, piece);
    done += piece;
  }
  stream.received += bytes;
  owner_.on_received(connection->app, to, stream.received);
}

void Engine::on_control(Link& link, const Control& control) {
  using Kind = Control::Kind;
  if (control.kind == Kind::kCredit) return on_credit(link, control);
  if (control.kind == Kind::kOpen) return on_open_call(link, control);
  if (control.kind == Kind::kReset && control.to == 0) {
    const auto found = incoming_.find({link.peer, control.from});
    if (found != incoming_.end()) abort(*connections_.find(found->second), ECONNRESET);
    return;
  }
  Connection* connection = connections_.find(control.to);
  if (connection != nullptr && connection->peer != link.peer) return void(++counters_.forged);
  if (connection == nullptr) return void(++counters_.stale);
  switch (control.kind) {
    case Kind::kAccept:
    case Kind::kRefuse:
      return on_answer(link, control);
    case Kind::kReset:
      return stop(*connection, plain_error(control.value));
    case Kind::kResetDone:
      if (connection->reset_told) close_now(*connection, connection->error);
      return;
    default:
      if (connection->phase != Connection::Phase::kOpen) return void(++counters_.stale);
      on_stream_control(*connection, control);
  }
}

void Engine::on_open_call(Link& link, const Control& control) {
  const auto found = listeners_.find(control.port);
  const bool fits = found != listeners_.end() && found->second.waiting < options_.backlog &&
                    control.from != 0 && control.ring.bytes > 0 && can_carry(control.transport) &&
                    !incoming_.contains({link.peer, control.from});
  std::unique_ptr<Connection> made;
  VirtualQpn number = 0;
  if (fits && apps_.at(found->second.app).connections.size() < options_.connections_per_app) {
    made = std::make_unique<Connection>();
    Connection& connection = *made;
    number = connections_.add(std::move(made));
    if (number != 0) {
      connection.self = number;
      connection.other = control.from;
      connection.phase = Connection::Phase::kIncoming;
      connection.peer = link.peer;
      connection.app = found->second.app;
      connection.port = control.port;
      connection.transport = control.transport;
      connection.far_ring = control.ring;
      connection.far_exposed = control.exposed;
    }
  }
  if (number == 0) {
    link.controls.push_back({.kind = Control::Kind::kRefuse,
                             .to = control.from,
                             .value = static_cast<std::uint64_t>(ECONNREFUSED)});
    return mark(*link.lanes[0]);
  }
  ++found->second.waiting;
  incoming_[{link.peer, control.from}] = number;
  apps_.at(found->second.app).connections.insert(number);
  owner_.on_incoming(found->second.app, control.port, number);
}

void Engine::on_answer(Link& link, const Control& control) {
  Connection& connection = *connections_.find(control.to);
  const bool waits = connection.phase == Connection::Phase::kOpening ||
                     (connection.phase == Connection::Phase::kResetting && connection.other == 0);
  if (!waits) return void(++counters_.garbled);
  if (control.kind == Control::Kind::kRefuse) {
    const bool ended = connection.phase == Connection::Phase::kResetting;
    return close_now(connection, ended ? connection.error : plain_error(control.value));
  }
  if (control.from == 0 || control.ring.bytes == 0) {
    ++counters_.garbled;
    return owner_.on_peer_broken(link.peer, "it accepted a connection without a ring");
  }
  connection.other = control.from;
  connection.far_ring = control.ring;
  connection.far_exposed = control.exposed;
  if (connection.phase == Connection::Phase::kResetting) return settle_ending(connection);
  connection.phase = Connection::Phase::kOpen;
  owner_.on_open(connection.app, connection.self);
  touch(connection);
}

void Engine::on_stream_control(Connection& connection, const Control& control) {
  bool valid = true;
  switch (control.kind) {
    case Control::Kind::kConsumed:
      valid = control.value <= connection.posted;
      if (valid) connection.far_consumed = std::max(connection.far_consumed, control.value);
      break;
    case Control::Kind::kFinish:
      valid = !connection.pull && !connection.finish_received;
      if (!valid) break;
      connection.finish_received = true;
      owner_.on_finished(connection.app, connection.self);
      return finish_if_over(connection);
    case Control::Kind::kOffer:
      return on_offer(connection, control);
    default:  // kTaken
      valid = connection.offered > 0 && control.value == connection.offered;
      if (!valid) break;
      acknowledge(connection, std::exchange(connection.offered, 0));
  }
  if (!valid) {
    ++counters_.garbled;
    return abort(connection, EPROTO);
  }
  touch(connection);
}

void Engine::on_offer(Connection& connection, const Control& control) {
  const StreamState& stream = connection.stream;
  const std::uint64_t room = connection.rings.receive.bytes - (stream.received - stream.consumed);
  const bool fits = control.ring.bytes > 0 && control.ring.bytes <= room;
  if (!fits || connection.pull || connection.finish_received) {
    ++counters_.garbled;
    return abort(connection, EPROTO);
  }
  if (connection.released) return abort(connection, ECONNRESET);
  connection.pull = Connection::Pull{.range = control.ring};
  touch(connection);
}

void Engine::on_credit(Link& link, const Control& control) {
  if (control.value < link.returned || control.value > link.used) {
    return owner_.on_peer_broken(link.peer, "it gave back receives that were never used");
  }
  link.returned = control.value;
  const Load far{control.port / 1000.0, std::min(control.from, 1000U) / 1000.0};
  if (link.choice.hear(load_, far)) ++counters_.switches;
  for (const auto& lane : link.lanes) {
    if (lane->qp != 0) mark(*lane);
  }
}

}  // namespace greynic::broker
