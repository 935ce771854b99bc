// Streams whose bytes are sent from where they lie: out of the segment, or out of memory that an
// application has lent, which is registered on the fly. One such range a connection at a time; what
// comes before and after it lies in the send ring as ever.

#include <algorithm>
#include <cerrno>

#include "core/engine.h"

namespace greynic::broker {

int Engine::lend(AppId app, std::uint32_t region, std::span<std::byte> memory) {
  const auto found = apps_.find(app);
  if (found == apps_.end() || found->second.leaving || region == 0 || memory.empty()) return EINVAL;
  return found->second.lent.try_emplace(region, memory).second ? 0 : EEXIST;
}

int Engine::take_back(AppId app, std::uint32_t region) {
  const auto found = apps_.find(app);
  if (found == apps_.end()) return EINVAL;
  const auto memory = found->second.lent.find(region);
  if (memory == found->second.lent.end() || memory->second.empty()) return EINVAL;
  memory->second = {};  // nothing more is sent from it
  return_if_free(app, region);
  return 0;
}

void Engine::return_if_free(AppId app, std::uint32_t region) {
  App& owner = apps_.at(app);
  const auto memory = owner.lent.find(region);
  if (memory == owner.lent.end() || !memory->second.empty()) return;
  if (registrations_.holds({app, region})) return;
  registrations_.drop({app, region});
  owner.lent.erase(memory);
  owner_.on_returned(app, region);
}

int Engine::send_from(AppId app, VirtualQpn number, std::uint32_t region, const Extent& part,
                      bool& made) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  if (!connection->is_stream()) return EOPNOTSUPP;
  if (connection->phase == Connection::Phase::kIncoming) return ENOTCONN;
  if (connection->wants_finish) return EPIPE;
  if (connection->lent) return EBUSY;
  App& owner = apps_.at(app);
  std::span<std::byte> memory = owner.segment;
  if (region != 0) {
    const auto found = owner.lent.find(region);
    if (found == owner.lent.end()) return EINVAL;
    memory = found->second;
  }
  const bool fits = part.offset <= memory.size() && part.bytes <= memory.size() - part.offset;
  if (!fits || part.bytes == 0) return EINVAL;
  Connection::Lent lent{.from = connection->stream.written, .bytes = part.bytes, .region = region};
  made = false;
  if (region == 0) {
    lent.memory = owner.memory;
    lent.memory.address += part.offset;
    lent.kind = Decision::From::kSegment;
  } else {
    const auto held = registrations_.hold({app, region}, memory, part);
    counters_.evicted = registrations_.evicted();
    if (!held) {
      ++counters_.not_registered;
      return ENOMEM;
    }
    lent.memory = held->memory;
    lent.registration = held->id;
    made = held->made;
    lent.kind = made ? Decision::From::kRegistered : Decision::From::kReused;
    ++(made ? counters_.registered : counters_.reused);
  }
  connection->lent = lent;
  connection->stream.written += part.bytes;
  touch(*connection);
  return 0;
}

/// Where the bytes of a stream lie from this place on, as far as they lie in one piece.
Engine::Source Engine::source_of(const Connection& connection, std::uint64_t place) const {
  const App& app = apps_.at(connection.app);
  const auto& lent = connection.lent;
  if (lent && place >= lent->from && place < lent->end()) {
    const std::uint64_t done = place - lent->from;
    return {{lent->memory.address + done, lent->memory.local_key, lent->memory.remote_key},
            lent->bytes - done,
            lent->kind};
  }
  const Extent& ring = connection.rings.send;
  const bool past = lent && place >= lent->end();
  const std::uint64_t at = (place - connection.past_ring - (past ? lent->bytes : 0)) % ring.bytes;
  std::uint64_t bytes = ring.bytes - at;
  if (lent && !past) bytes = std::min(bytes, lent->from - place);
  return {{app.memory.address + ring.offset + at, app.memory.local_key, app.memory.remote_key},
          bytes,
          Decision::From::kRing};
}

/// How much of the send ring is taken.
std::uint64_t Engine::in_ring(const Connection& connection, std::uint64_t written) const {
  const std::uint64_t acknowledged = connection.stream.acknowledged;
  const auto& lent = connection.lent;
  const std::uint64_t beside = lent ? lent->end() - std::max(acknowledged, lent->from) : 0;
  return written - acknowledged - beside;
}

void Engine::acknowledge(Connection& connection, std::uint64_t bytes) {
  StreamState& stream = connection.stream;
  stream.acknowledged += bytes;
  if (connection.lent && stream.acknowledged >= connection.lent->end()) {
    connection.past_ring += connection.lent->bytes;
    let_go(connection);
  }
  owner_.on_sent(connection.app, connection.self, stream.acknowledged);
}

void Engine::let_go(Connection& connection) {
  if (!connection.lent) return;
  const std::uint32_t region = connection.lent->region;
  registrations_.release(connection.lent->registration);
  connection.lent.reset();
  if (region != 0) return_if_free(connection.app, region);
}

/// For the log: why a piece goes as it does.
void Engine::note(const Link& link, const Lane& lane, const Connection& connection, Verb verb,
                  std::uint64_t bytes, std::uint64_t waiting, const Source& source) {
  (source.kind == Decision::From::kRing ? counters_.ring_bytes : counters_.lent_bytes) += bytes;
  Decision decision{.connection = connection.self, .peer = link.peer, .bytes = bytes};
  decision.waiting = waiting;
  decision.verb = verb;
  decision.from = source.kind;
  decision.why =
      connection.rings.rule != VerbRule::kAuto ? Decision::Why::kAsked : Decision::Why::kLoad;
  // A SEND that nobody asked for is one because it fits a receive, and so is a small one that was.
  if (verb == Verb::kSend && connection.rings.rule != VerbRule::kSend) {
    decision.why = Decision::Why::kSmall;
  }
  decision.own = link.choice.own();
  decision.far = link.choice.far();
  decision.prefers_read = link.choice.rule() == VerbRule::kRead;
  decision.bulk = lane.index >= options_.latency_lanes;
  decision.lane = lane.index;
  decision.qp = lane.qp;
  decisions_.add(decision);
}

}  // namespace greynic::broker
