// How connections end. Whoever writes into far memory says when it has stopped, and only then does
// the far side give the memory back: by kFinish both ways, or by kReset and kResetDone.

#include <cerrno>

#include "core/engine.h"

namespace greynic::broker {

int Engine::finish(AppId app, VirtualQpn number) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  if (connection->phase == Connection::Phase::kIncoming) return ENOTCONN;
  connection->wants_finish = true;
  touch(*connection);
  return 0;
}

int Engine::close(AppId app, VirtualQpn number) {
  Connection* connection = own(app, number);
  if (connection == nullptr) return EBADF;
  connection->released = true;
  const bool unread =
      connection->is_stream() &&
      (connection->stream.received > connection->stream.consumed || connection->pull);
  if (connection->phase != Connection::Phase::kOpen || unread) {
    abort(*connection, ECONNRESET);
    return 0;
  }
  connection->wants_finish = true;
  touch(*connection);
  finish_if_over(*connection);
  return 0;
}

void Engine::finish_if_over(Connection& connection) {
  const bool both = connection.finish_sent && connection.finish_received;
  if (connection.phase != Connection::Phase::kOpen || !both) return;
  if (connection.released && connection.under_way == 0 && connection.controls.empty()) {
    close_now(connection, 0);
  }
}

/// Ends it from this side.
void Engine::abort(Connection& connection, int error) {
  Link* link = link_of(connection.peer);
  switch (connection.phase) {
    case Connection::Phase::kIncoming:
      link->controls.push_back({.kind = Control::Kind::kRefuse,
                                .to = connection.other,
                                .value = static_cast<std::uint64_t>(ECONNREFUSED)});
      mark(*link->lanes[0]);
      return close_now(connection, error);
    case Connection::Phase::kOpening:
      // The other side knows only our number: it drops what nobody has accepted yet.
      link->controls.push_back({.kind = Control::Kind::kReset, .from = connection.self});
      mark(*link->lanes[0]);
      [[fallthrough]];
    case Connection::Phase::kOpen:
      connection.phase = Connection::Phase::kResetting;
      connection.error = error;
      connection.controls.clear();
      connection.transfers.clear();
      return settle_ending(connection);
    default:
      return;
  }
}

/// The other side has ended it, and writes no more.
void Engine::stop(Connection& connection, int error) {
  switch (connection.phase) {
    case Connection::Phase::kOpening:
      return close_now(connection, error);
    case Connection::Phase::kResetting:
      if (connection.reset_told) return close_now(connection, connection.error);
      connection.phase = Connection::Phase::kStopping;
      break;
    case Connection::Phase::kOpen:
      connection.phase = Connection::Phase::kStopping;
      connection.error = error;
      connection.controls.clear();
      connection.transfers.clear();
      break;
    default:
      return;
  }
  settle_ending(connection);
}

void Engine::settle_ending(Connection& connection) {
  if (connection.under_way > 0 || connection.other == 0) return;
  Link& link = *link_of(connection.peer);
  if (connection.phase == Connection::Phase::kResetting && !connection.reset_told) {
    connection.reset_told = true;
    link.controls.push_back({.kind = Control::Kind::kReset,
                             .to = connection.other,
                             .value = static_cast<std::uint64_t>(ECONNRESET)});
    mark(*link.lanes[0]);
  } else if (connection.phase == Connection::Phase::kStopping) {
    link.controls.push_back({.kind = Control::Kind::kResetDone, .to = connection.other});
    mark(*link.lanes[0]);
    close_now(connection, connection.error);
  }
}

void Engine::close_now(Connection& connection, int error) {
  const AppId app = connection.app;
  const VirtualQpn number = connection.self;
  if (connection.phase == Connection::Phase::kIncoming) {
    incoming_.erase({connection.peer, connection.other});
    const auto listener = listeners_.find(connection.port);
    if (listener != listeners_.end() && listener->second.app == app) --listener->second.waiting;
  }
  let_go(connection);
  apps_.at(app).connections.erase(number);
  connections_.remove(number);
  owner_.on_closed(app, number, error);
  free_if_left(app);
}

void Engine::free_if_left(AppId app) {
  const auto found = apps_.find(app);
  if (found == apps_.end() || !found->second.leaving || !found->second.connections.empty()) return;
  for (const auto& [peer, link] : links_) {
    for (const auto& lane : link->lanes) lane->turns.forget(app);
  }
  for (const auto& [region, memory] : found->second.lent) registrations_.drop({app, region});
  device_.deregister(found->second.memory);
  apps_.erase(found);
  owner_.on_detached(app);
}

}  // namespace greynic::broker
