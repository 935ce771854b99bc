#include "sessions.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "greynic/daemon/log.h"
#include "greynic/zero/source.h"

namespace greynic::remote {
namespace {

using Clock = daemon::Leases::Clock;

}  // namespace

Result<Sessions::Opened> Sessions::open(const agent::Caller& caller, std::uint32_t classes,
                                        std::chrono::seconds lease, const IsOpen& is_open) {
  std::uint32_t may = 7;
  if (!options_.allowed.empty()) {
    const auto found = options_.allowed.find(caller.common_name);
    may = found == options_.allowed.end() ? 0 : found->second;
  }
  if ((may & classes) == 0) {
    return fail(ErrorCode::kMissing,
                fmt::format("'{}' may see none of the classes that it asks for; `greynic zero "
                            "agent --allow NAME=CLASS` lets it",
                            daemon::plain(caller.common_name, 64)));
  }
  auto session = std::make_shared<Session>();
  auto link = monitor::local_link(options_.socket, may & classes);
  if (!link) return pass_on(link);
  session->link = std::move(*link);
  session->lease = lease;
  session->connection = caller.connection;
  Ended ended;  // goes after the lock
  const std::lock_guard lock(mutex_);
  auto id = leases_.grant(caller.owner, lease, Clock::now());
  if (!id || !*id) {
    std::vector<std::uint64_t> gone;
    for (const auto& [number, one] : sessions_) {
      if (!is_open(one->connection)) gone.push_back(number);
    }
    ended = end(gone);
    id = leases_.grant(caller.owner, lease, Clock::now());
  }
  if (!id) return pass_on(id);
  if (!*id) return fail(ErrorCode::kTooBig, "too many collectors; close some and try again");
  sessions_[**id] = std::move(session);
  return Opened{**id, may & classes};
}

Result<std::shared_ptr<Sessions::Session>> Sessions::find(const agent::Caller& caller,
                                                          std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  if (leases_.renew(session, caller.owner, Clock::now()) == nullptr) {
    return fail(ErrorCode::kRefused, "there is no such session; attach again");
  }
  const auto& found = sessions_.at(session);
  found->connection = caller.connection;
  return found;
}

Sessions::Ended Sessions::end(const std::vector<std::uint64_t>& ids) {
  Ended ended;
  for (const std::uint64_t id : ids) {
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) continue;
    ended.push_back(std::move(session->second));
    sessions_.erase(session);
    leases_.end(id);
  }
  return ended;
}

/// With the session's mutex held. Null: may not be seen, or is gone.
Result<Sessions::Held*> Sessions::held_of(Session& session, std::uint64_t arena) {
  const auto now = Clock::now();
  std::erase_if(session.arenas,
                [&](const auto& one) { return now - one.second.used > session.lease; });
  Held& held = session.arenas[arena];
  held.used = now;
  if (held.source == nullptr) {
    if (auto heard = session.link->hear(); !heard) return pass_on(heard);
    auto source = arena == 0 ? session.link->directory() : session.link->arena(arena);
    if (!source) return pass_on(source);
    held.source = std::move(*source);
  } else if (arena == 0) {
    // Once a look: an agent that has gone is told here.
    if (auto heard = session.link->hear(); !heard) return pass_on(heard);
  }
  if (held.source != nullptr) return &held;
  session.arenas.erase(arena);
  return nullptr;
}

Result<bool> Sessions::read(const agent::Caller& caller, std::uint64_t id, const Asked& asked,
                            std::string& into) {
  if (asked.offsets.size() != asked.sizes.size() || asked.sizes.size() > kMostPieces) {
    return fail(ErrorCode::kBadInput, "a READ has an offset and a size for each of its pieces");
  }
  std::uint64_t bytes = 0;
  for (const std::uint32_t size : asked.sizes) bytes += size;
  if (bytes > kMostReadBytes) {
    return fail(ErrorCode::kTooBig,
                fmt::format("a READ of {} bytes; at most {} come at once", bytes, kMostReadBytes));
  }
  auto session = find(caller, id);
  if (!session) return pass_on(session);
  const std::lock_guard lock((*session)->mutex);
  const auto held = held_of(**session, asked.arena);
  if (!held) return pass_on(held);
  if (*held == nullptr) return false;
  into.resize(bytes);
  std::vector<zero::Piece> pieces;
  std::size_t at = 0;
  for (std::size_t i = 0; i < asked.sizes.size(); ++i) {
    pieces.push_back(
        {false, asked.offsets[i],
         std::as_writable_bytes(std::span(into.data() + at, std::size_t{asked.sizes[i]}))});
    at += asked.sizes[i];
  }
  if (auto got = (*held)->source->read(pieces); !got) return pass_on(got);
  return true;
}

Result<RdmaEnd> Sessions::connect(const agent::Caller& caller, std::uint64_t id,
                                  const RdmaEnd& remote) {
  if (device_ == nullptr) {
    return fail(ErrorCode::kMissing,
                "this agent has no RDMA device; start it with --device, or leave \"device\" out "
                "of the hosts file");
  }
  auto session = find(caller, id);
  if (!session) return pass_on(session);
  auto queue = RdmaQueue::create(*device_, 1);
  if (!queue) return pass_on(queue);
  if (auto connected = queue->connect(remote); !connected) return pass_on(connected);
  const std::lock_guard lock((*session)->mutex);
  for (auto& [arena, held] : (*session)->arenas) held.exposed.reset();  // of the queue pair before
  (*session)->queue = std::move(*queue);
  return (*session)->queue->end();
}

Result<std::optional<Place>> Sessions::expose(const agent::Caller& caller, std::uint64_t id,
                                              std::uint64_t arena) {
  auto session = find(caller, id);
  if (!session) return pass_on(session);
  const std::lock_guard lock((*session)->mutex);
  if (!(*session)->queue) return fail(ErrorCode::kRefused, "connect a queue pair first");
  const auto found = held_of(**session, arena);
  if (!found) return pass_on(found);
  if (*found == nullptr) return std::nullopt;
  Held& held = **found;
  if (!held.exposed) {
    auto exposed = remote::expose(*(*session)->queue, held.source->memory());
    if (!exposed) return pass_on(exposed);
    held.exposed = std::move(*exposed);
  }
  return Place{held.exposed->address, held.exposed->region.remote_key(), held.exposed->bytes};
}

void Sessions::look(const std::function<bool(const std::string& owner)>& revoked) {
  Ended ended;  // goes after the lock
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> over = leases_.expired(Clock::now());
  for (const auto& [id, session] : sessions_) {
    const daemon::Leases::Lease* const lease = leases_.find(id);
    if (lease != nullptr && revoked(lease->owner)) over.push_back(id);
  }
  ended = end(over);
}

}  // namespace greynic::remote
