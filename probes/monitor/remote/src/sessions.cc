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

void Sessions::forget_unused(Session& session) {
  const auto now = Clock::now();
  std::erase_if(session.arenas, [&](const auto& one) {
    const bool unused = now - one.second.used > session.lease;
    if (unused && session.keys) session.keys->withdraw(one.first);
    return unused;
  });
}

/// With the session's mutex held. Null: may not be seen, or is gone.
Result<Sessions::Held*> Sessions::held_of(Session& session, std::uint64_t arena) {
  forget_unused(session);
  Held& held = session.arenas[arena];
  held.used = Clock::now();
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

/// What the agent shows and is not exposed yet, and where it is.
Result<void> Sessions::expose_new(Session& session) const {
  if (auto heard = session.link->hear(); !heard) return heard;
  std::vector<std::uint64_t> fresh = session.link->shown();
  if (!session.arenas.contains(0)) fresh.push_back(0);
  for (const auto& [arena, held] : session.arenas) {
    if (held.source != nullptr && !held.exposed) fresh.push_back(arena);
  }
  for (const std::uint64_t arena : fresh) {
    const auto held = held_of(session, arena);
    // One that is no arena stays hidden; who looks for it finds nothing.
    if (!held && held.error().code == ErrorCode::kBadInput) continue;
    if (!held) return pass_on(held);
    if (*held == nullptr) continue;
    auto exposed = remote::expose(*session.queue, arena == 0 && !options_.directory.empty()
                                                      ? options_.directory
                                                      : (*held)->source->memory());
    // An arena that nobody can expose costs no other.
    if (!exposed && exposed.error().code == ErrorCode::kMissing && arena != 0) {
      (*held)->source.reset();
      if (options_.tell) {
        options_.tell("an arena stays hidden from READs: " + exposed.error().message +
                      "; run the agent as root or as the program's user");
      }
      continue;
    }
    if (!exposed) return pass_on(exposed);
    (*held)->exposed = std::move(*exposed);
    const Exposed& there = *(*held)->exposed;
    if (auto shown =
            session.keys->show(arena, {there.address, there.region.remote_key(), there.bytes});
        !shown) {
      return shown;
    }
  }
  return {};
}

Result<Sessions::Joined> Sessions::connect(const agent::Caller& caller, std::uint64_t id,
                                           const RdmaEnd& remote) {
  if (device_ == nullptr) {
    return fail(ErrorCode::kMissing,
                "this agent has no RDMA device; start it with --device, or leave \"device\" out "
                "of the hosts file");
  }
  auto found = find(caller, id);
  if (!found) return pass_on(found);
  Session& session = **found;
  const std::lock_guard lock(session.mutex);
  // A caller that shares few queue pairs among its hosts comes again and again.
  if (session.queue && !session.queue->reset()) {
    for (auto& [arena, held] : session.arenas) held.exposed.reset();
    session.keys.reset();
    session.queue.reset();
  }
  if (!session.queue) {
    auto queue = RdmaQueue::create(*device_, 1);
    if (!queue) return pass_on(queue);
    auto keys = Keys::create(*queue);
    if (!keys) return pass_on(keys);
    session.queue = std::move(*queue);
    session.keys = std::move(*keys);
  }
  if (auto connected = session.queue->connect(remote); !connected) return pass_on(connected);
  if (auto exposed = expose_new(session); !exposed) return pass_on(exposed);
  return Joined{session.queue->end(), session.keys->place()};
}

Result<bool> Sessions::keep(const agent::Caller& caller, std::uint64_t id, std::uint64_t arena) {
  auto session = find(caller, id);
  if (!session) return pass_on(session);
  const std::lock_guard lock((*session)->mutex);
  if (auto heard = (*session)->link->hear(); !heard) return pass_on(heard);
  const auto held = (*session)->arenas.find(arena);
  if (held == (*session)->arenas.end() || !held->second.exposed) return false;
  held->second.used = Clock::now();
  return true;
}

void Sessions::look(const std::function<bool(const std::string& owner)>& revoked) {
  Ended ended;  // goes after the lock
  std::vector<std::shared_ptr<Session>> open;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> over = leases_.expired(Clock::now());
    for (const auto& [id, session] : sessions_) {
      const daemon::Leases::Lease* const lease = leases_.find(id);
      if (lease != nullptr && revoked(lease->owner)) over.push_back(id);
    }
    ended = end(over);
    for (const auto& [id, session] : sessions_) open.push_back(session);
  }
  for (const auto& session : open) {
    const std::lock_guard lock(session->mutex);
    if (!session->queue) continue;
    forget_unused(*session);
    const auto exposed = expose_new(*session);
    if (exposed) session->trouble.clear();
    if (exposed || session->trouble == exposed.error().message) continue;
    session->trouble = exposed.error().message;
    if (options_.tell) options_.tell("not all can be READ: " + session->trouble);
  }
}

}  // namespace greynic::remote
