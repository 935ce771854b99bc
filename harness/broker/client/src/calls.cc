// The functions of greynic_broker.h.

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client.h"

using greynic::broker::VerbRule;
using greynic::broker::client::Attachment;
using greynic::broker::local::Part;
using greynic::broker::local::Request;
using greynic::broker::local::RequestKind;

namespace {

thread_local std::string last_reason;

static_assert(GREYNIC_BROKER_UC_BYTES == greynic::broker::kUcBytes);
static_assert(GREYNIC_BROKER_UD_BYTES == greynic::broker::kUdBytes);

constexpr int kKnownFlags =
    GREYNIC_BROKER_NONBLOCK | GREYNIC_BROKER_SEND | GREYNIC_BROKER_WRITE | GREYNIC_BROKER_READ;
constexpr int kMessageFlags = GREYNIC_BROKER_UC | GREYNIC_BROKER_UD;
using greynic::Transport;
using greynic::broker::kLengthBytes;

/// False with errno for flags that are none, or two verbs.
bool take_flags(int flags, bool with_verb, std::uint8_t& rule) {
  const int verbs = flags & (GREYNIC_BROKER_SEND | GREYNIC_BROKER_WRITE | GREYNIC_BROKER_READ);
  const bool one = verbs == 0 || verbs == GREYNIC_BROKER_SEND || verbs == GREYNIC_BROKER_WRITE ||
                   verbs == GREYNIC_BROKER_READ;
  if ((flags & ~kKnownFlags) != 0 || !one || (!with_verb && verbs != 0)) {
    errno = EINVAL;
    return false;
  }
  rule = static_cast<std::uint8_t>(verbs == GREYNIC_BROKER_SEND    ? VerbRule::kSend
                                   : verbs == GREYNIC_BROKER_WRITE ? VerbRule::kWrite
                                   : verbs == GREYNIC_BROKER_READ  ? VerbRule::kRead
                                                                   : VerbRule::kAuto);
  return true;
}

/// Takes UC and UD out of the flags of a connect. False with errno: both, or with a verb that they do
/// not carry.
bool take_transport(int& flags, Request& into) {
  const int asked = flags & kMessageFlags;
  if (asked == kMessageFlags || (asked != 0 && (flags & GREYNIC_BROKER_READ) != 0) ||
      (asked != 0 && (flags & GREYNIC_BROKER_WRITE) != 0)) {
    errno = asked == kMessageFlags ? EINVAL : EOPNOTSUPP;
    return false;
  }
  const Transport transport = asked == GREYNIC_BROKER_UC   ? Transport::kUC
                              : asked == GREYNIC_BROKER_UD ? Transport::kUD
                                                           : Transport::kRC;
  into.transport = static_cast<std::uint8_t>(transport);
  flags &= ~kMessageFlags;
  return true;
}

/// "10.0.0.7", "10.0.0.7:18701", "fd00::7", "[fd00::7]:18701", "lid:12", "localhost".
bool take_host(std::string host, Request& into) {
  if (host.starts_with("lid:")) {
    char* end = nullptr;
    const unsigned long lid = std::strtoul(host.c_str() + 4, &end, 0);
    constexpr unsigned long kLastUnicast = 0xbfff;
    into.lid = static_cast<std::uint16_t>(lid);
    return end != host.c_str() + 4 && *end == '\0' && lid >= 1 && lid <= kLastUnicast;
  }
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.rfind(':');
  const bool v6 = std::count(host.begin(), host.end(), ':') > 1;
  const bool with_port = colon != std::string::npos && (!v6 || colon == bracket + 1);
  if (with_port) {
    char* end = nullptr;
    const long port = std::strtol(host.c_str() + colon + 1, &end, 10);
    if (*end != '\0' || port < 1 || port > 65535) return false;
    into.peer_port = static_cast<std::uint16_t>(port);
    host.resize(colon);
  }
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") host = "127.0.0.1";
  if (inet_pton(AF_INET, host.c_str(), into.target.data() + 12) == 1) {
    into.target[10] = into.target[11] = 0xff;
    return true;
  }
  return inet_pton(AF_INET6, host.c_str(), into.target.data()) == 1;
}

ssize_t fail_with(int error) {
  errno = error;
  return -1;
}

/// Copies out of the receive ring what lies at `from`, and into the send ring.
void copy_out(const greynic_broker_connection& c, std::uint64_t from, void* to, std::size_t bytes) {
  const std::uint64_t ring = c.receive_ring.bytes, at = from % ring;
  const std::byte* const base = c.attachment->at(c.receive_ring);
  const std::size_t first = std::min<std::uint64_t>(bytes, ring - at);
  auto* const into = static_cast<std::byte*>(to);
  std::copy_n(base + at, first, into);
  std::copy_n(base, bytes - first, into + first);
}
void copy_in(greynic_broker_connection& c, const void* from, std::size_t bytes) {
  const std::uint64_t ring = c.send_ring.bytes, at = (c.written - c.past_ring) % ring;
  std::byte* const base = c.attachment->at(c.send_ring);
  const std::size_t first = std::min<std::uint64_t>(bytes, ring - at);
  const auto* const out_of = static_cast<const std::byte*>(from);
  std::copy_n(out_of, first, base + at);
  std::copy_n(out_of + first, bytes - first, base);
  c.written += bytes;
}

/// Room in the send ring, copied to; how many bytes.
std::size_t put(greynic_broker_connection& c, const std::byte* data, std::size_t bytes) {
  const std::uint64_t ring = c.send_ring.bytes;
  const std::uint64_t room = ring - (c.written - c.sent);
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes));
  copy_in(c, data, count);
  return count;
}

/// One message, whole, with its length before it.
ssize_t send_message(std::unique_lock<std::mutex>& lock, greynic_broker_connection& c,
                     const void* data, std::size_t bytes, bool waits) {
  const std::size_t most =
      c.transport == Transport::kUC ? GREYNIC_BROKER_UC_BYTES : GREYNIC_BROKER_UD_BYTES;
  const std::size_t taken = kLengthBytes + bytes;
  if (bytes == 0 || bytes > most || taken > c.send_ring.bytes) return fail_with(EMSGSIZE);
  const auto ready = [&] {
    return c.over || (c.open && c.written - c.sent + taken <= c.send_ring.bytes);
  };
  c.broker->take_events();
  if (waits) (void)c.broker->wait(lock, ready);
  if (c.over) return fail_with(c.error != 0 ? c.error : EPIPE);
  if (c.wants_finish) return fail_with(EPIPE);
  if (!ready()) return fail_with(EAGAIN);
  const auto length = static_cast<std::uint32_t>(bytes);
  copy_in(c, &length, sizeof length);
  copy_in(c, data, bytes);
  (void)c.attachment->post(
      {.kind = RequestKind::kSend, .connection = c.number, .value = c.written});
  return static_cast<ssize_t>(bytes);
}

/// Waits for bytes; how many lie there in one piece or more, 0 at the end, -1 with errno.
ssize_t await_bytes(std::unique_lock<std::mutex>& lock, greynic_broker_connection& c, int flags) {
  greynic_broker& broker = *c.broker;
  // What was shown is taken only now.
  c.consumed += std::exchange(c.shown, 0);
  broker.take_events();
  const auto ready = [&] { return c.received > c.consumed || c.finished || c.over; };
  broker.tell_consumed(c, !ready());
  if (!ready() && (flags & GREYNIC_BROKER_NONBLOCK) != 0) return fail_with(EAGAIN);
  (void)broker.wait(lock, ready, greynic_broker::For::kBytes);
  if (c.received > c.consumed) return static_cast<ssize_t>(c.received - c.consumed);
  if (c.over && c.error != 0 && !c.finished) return fail_with(c.error);
  return 0;
}

}  // namespace

extern "C" {

const char* greynic_broker_reason(void) { return last_reason.c_str(); }

greynic_broker* greynic_broker_open(const char* socket,
                                    const struct greynic_broker_options* options) {
  auto broker = std::make_unique<greynic_broker>();
  const greynic_broker_options none{};
  if (options == nullptr) options = &none;
  broker->socket = socket != nullptr ? socket : "/run/greynic/broker.sock";
  broker->segment_bytes = options->segment_bytes != 0 ? options->segment_bytes : 64U << 20;
  broker->ring_bytes = options->ring_bytes != 0 ? options->ring_bytes : 256U << 10;
  broker->reconnects = options->reconnect != 0;
  broker->wants_huge_pages = options->huge_pages != 0;
  last_reason.clear();
  if (broker->ring_bytes > broker->segment_bytes || broker->ring_bytes > 1U << 31) {
    errno = EINVAL;
    return nullptr;
  }
  broker->attachment = Attachment::open(broker->socket, broker->segment_bytes,
                                        broker->wants_huge_pages, last_reason);
  if (!broker->attachment) return nullptr;
  broker->take_on_costs();
  return broker.release();
}

void greynic_broker_close(greynic_broker* broker) {
  if (broker == nullptr) return;
  {
    std::unique_lock lock(broker->mutex);
    broker->linger(lock);
  }
  for (greynic_broker_connection* connection : broker->connections) delete connection;
  for (const auto& [port, listener] : broker->listeners) delete listener;
  delete broker;
}

size_t greynic_broker_huge_bytes(greynic_broker* broker) {
  const std::lock_guard lock(broker->mutex);
  last_reason.clear();
  if (!broker->attachment) return 0;
  if (const int error = broker->attachment->huge_error()) {
    last_reason = std::string("no huge page: ") + std::strerror(error) +
                  "; the rest of the segment lies on small ones";
  } else if (!broker->wants_huge_pages) {
    last_reason = "huge pages were not asked for: set huge_pages";
  }
  return broker->attachment->huge_bytes();
}

int greynic_broker_fd(greynic_broker* broker) {
  const std::lock_guard lock(broker->mutex);
  return broker->attachment ? broker->attachment->socket() : -1;
}

greynic_broker_listener* greynic_broker_listen(greynic_broker* broker, uint16_t port, int flags) {
  std::unique_lock lock(broker->mutex);
  std::uint8_t rule = 0;
  if (!take_flags(flags, false, rule) || !broker->be_attached(lock)) return nullptr;
  if (port == 0 || broker->listeners.contains(port)) {
    errno = port == 0 ? EINVAL : EADDRINUSE;
    return nullptr;
  }
  auto made = std::make_unique<greynic_broker_listener>();
  greynic_broker_listener& listener = *made;
  listener.broker = broker;
  listener.port = port;
  listener.attachment = broker->attachment;
  broker->listeners[port] = made.get();
  (void)broker->attachment->post({.kind = RequestKind::kListen, .port = port});
  const bool heard = broker->wait(lock, [&] { return listener.answered; });
  if (heard && listener.error == 0) return made.release();
  broker->listeners.erase(port);
  std::erase(broker->changed_listeners, &listener);
  errno = heard ? listener.error : ECONNRESET;
  return nullptr;
}

void greynic_broker_unlisten(greynic_broker_listener* listener) {
  if (listener == nullptr) return;
  greynic_broker& broker = *listener->broker;
  const std::lock_guard lock(broker.mutex);
  if (broker.attachment) {
    (void)broker.attachment->post({.kind = RequestKind::kUnlisten, .port = listener->port});
  }
  broker.listeners.erase(listener->port);
  std::erase(broker.changed_listeners, listener);
  delete listener;
}

greynic_broker_connection* greynic_broker_accept_into(greynic_broker_listener* listener,
                                                      void* memory, size_t bytes, int flags) {
  greynic_broker& broker = *listener->broker;
  std::unique_lock lock(broker.mutex);
  std::uint8_t rule = 0;
  if (!take_flags(flags, true, rule) || !broker.be_attached(lock)) return nullptr;
  const auto ready = [&] { return !listener->incoming.empty(); };
  broker.take_events();
  while (!ready()) {
    if ((flags & GREYNIC_BROKER_NONBLOCK) != 0) {
      errno = EAGAIN;
      return nullptr;
    }
    if (!broker.wait(lock, ready) && !broker.be_attached(lock)) return nullptr;
  }
  const greynic_broker_listener::Incoming one = listener->incoming.front();
  greynic_broker_connection* made = broker.make_connection(memory, bytes);
  if (made == nullptr) return nullptr;
  listener->incoming.pop_front();
  made->number = one.number;
  made->from = one.from;
  made->transport = one.transport;
  made->accepted = made->open = true;
  broker.by_number[one.number] = made;
  (void)broker.attachment->post({.kind = RequestKind::kAccept,
                                 .rule = rule,
                                 .connection = one.number,
                                 .send = made->send_ring,
                                 .receive = made->receive_ring});
  return made;
}

greynic_broker_connection* greynic_broker_accept(greynic_broker_listener* listener, int flags) {
  return greynic_broker_accept_into(listener, nullptr, 0, flags);
}

greynic_broker_connection* greynic_broker_connect_into(greynic_broker* broker, const char* host,
                                                       uint16_t port, void* memory, size_t bytes,
                                                       int flags) {
  std::unique_lock lock(broker->mutex);
  Request request{.kind = RequestKind::kConnect, .port = port};
  if (!take_transport(flags, request) || !take_flags(flags, true, request.rule)) return nullptr;
  if (port == 0 || !take_host(host, request)) {
    errno = EINVAL;
    return nullptr;
  }
  if (!broker->be_attached(lock)) return nullptr;
  greynic_broker_connection* made = broker->make_connection(memory, bytes);
  if (made == nullptr) return nullptr;
  made->transport = static_cast<Transport>(request.transport);
  request.value = made->cookie = broker->next_cookie++;
  request.send = made->send_ring;
  request.receive = made->receive_ring;
  broker->by_cookie[made->cookie] = made;
  (void)broker->attachment->post(request);
  if ((flags & GREYNIC_BROKER_NONBLOCK) != 0) {
    errno = EINPROGRESS;
    return made;
  }
  (void)broker->wait(lock, [&] { return made->open || made->over; });
  if (!made->over) return made;
  const int error = made->error;
  broker->destroy(made);
  errno = error;
  return nullptr;
}

greynic_broker_connection* greynic_broker_connect(greynic_broker* broker, const char* host,
                                                  uint16_t port, int flags) {
  return greynic_broker_connect_into(broker, host, port, nullptr, 0, flags);
}

ssize_t greynic_broker_send(greynic_broker_connection* connection, const void* data, size_t bytes,
                            int flags) {
  greynic_broker_connection& c = *connection;
  greynic_broker& broker = *c.broker;
  std::unique_lock lock(broker.mutex);
  std::uint8_t rule = 0;
  if (!take_flags(flags, false, rule)) return -1;
  const bool waits = (flags & GREYNIC_BROKER_NONBLOCK) == 0;
  if (!c.is_stream()) return send_message(lock, c, data, bytes, waits);
  std::size_t done = 0;
  while (done < bytes) {
    broker.take_events();
    const auto ready = [&] { return c.over || (c.open && c.written - c.sent < c.send_ring.bytes); };
    if (waits) (void)broker.wait(lock, ready);
    if (c.over) return fail_with(c.error != 0 ? c.error : EPIPE);
    if (c.wants_finish) return fail_with(EPIPE);
    if (!ready()) break;
    if (waits) {
      const ssize_t left =
          broker.send_from(lock, c, static_cast<const std::byte*>(data) + done, bytes - done);
      if (left < 0) return -1;
      done += static_cast<std::size_t>(left);
      if (left > 0) continue;
    }
    done += put(c, static_cast<const std::byte*>(data) + done, bytes - done);
    (void)c.attachment->post(
        {.kind = RequestKind::kSend, .connection = c.number, .value = c.written});
    if (!waits) break;
  }
  return done > 0 || bytes == 0 ? static_cast<ssize_t>(done) : fail_with(EAGAIN);
}

ssize_t greynic_broker_recv_zero_copy(greynic_broker_connection* connection, const void** data,
                                      size_t bytes, int flags) {
  greynic_broker_connection& c = *connection;
  std::unique_lock lock(c.broker->mutex);
  std::uint8_t rule = 0;
  if (!take_flags(flags, false, rule)) return -1;
  if (!c.is_stream()) return fail_with(EOPNOTSUPP);
  const ssize_t there = await_bytes(lock, c, flags);
  if (there <= 0) return there;
  const std::uint64_t at = c.consumed % c.receive_ring.bytes;
  c.shown = std::min<std::uint64_t>(
      {static_cast<std::uint64_t>(there), bytes, c.receive_ring.bytes - at});
  *data = c.attachment->at(c.receive_ring) + at;
  return static_cast<ssize_t>(c.shown);
}

ssize_t greynic_broker_recv(greynic_broker_connection* connection, void* data, size_t bytes,
                            int flags) {
  greynic_broker_connection& c = *connection;
  std::unique_lock lock(c.broker->mutex);
  std::uint8_t rule = 0;
  if (!take_flags(flags, false, rule)) return -1;
  if (bytes == 0) return 0;
  const ssize_t there = await_bytes(lock, c, flags);
  if (there <= 0) return there;
  std::uint32_t length = 0;
  if (!c.is_stream()) copy_out(c, c.consumed, &length, sizeof length);
  const std::size_t head = c.is_stream() ? 0 : kLengthBytes;
  const std::size_t whole = c.is_stream() ? static_cast<std::size_t>(there) : length;
  const std::size_t count = std::min(bytes, whole);
  copy_out(c, c.consumed + head, data, count);
  c.consumed += c.is_stream() ? count : head + whole;
  c.broker->tell_consumed(c, false);
  return static_cast<ssize_t>(count);
}

void* greynic_broker_register(greynic_broker* broker, size_t bytes) {
  std::unique_lock lock(broker->mutex);
  if (!broker->be_attached(lock)) return nullptr;
  const Part part = broker->attachment->take(bytes);
  if (part.bytes != 0) return broker->attachment->at(part);
  errno = ENOMEM;
  return nullptr;
}

void greynic_broker_unregister(greynic_broker* broker, void* memory) {
  const std::lock_guard lock(broker->mutex);
  if (broker->attachment) broker->attachment->give_back(broker->attachment->part_at(memory));
}

int greynic_broker_state(greynic_broker_connection* connection) {
  const std::lock_guard lock(connection->broker->mutex);
  connection->broker->take_events();
  if (connection->over) {
    return static_cast<int>(fail_with(connection->error != 0 ? connection->error : EPIPE));
  }
  return connection->open ? 1 : 0;
}

int greynic_broker_peer(greynic_broker_connection* connection, char* text, size_t bytes) {
  if (!connection->accepted) return static_cast<int>(fail_with(ENOTCONN));
  const std::uint8_t* at = connection->from.data();
  const bool v4 = std::all_of(at, at + 10, [](std::uint8_t b) { return b == 0; }) && at[10] == 0xff;
  const char* done = v4 ? inet_ntop(AF_INET, at + 12, text, static_cast<socklen_t>(bytes))
                        : inet_ntop(AF_INET6, at, text, static_cast<socklen_t>(bytes));
  return done == nullptr ? -1 : 0;
}

uint64_t greynic_broker_sent(greynic_broker_connection* connection) {
  const std::lock_guard lock(connection->broker->mutex);
  connection->broker->take_events();
  return connection->sent;
}

int greynic_broker_finish(greynic_broker_connection* connection) {
  greynic_broker_connection& c = *connection;
  const std::lock_guard lock(c.broker->mutex);
  c.broker->take_events();
  if (c.over) return static_cast<int>(fail_with(c.error != 0 ? c.error : EPIPE));
  if (std::exchange(c.wants_finish, true) || !c.open) return 0;
  (void)c.attachment->post({.kind = RequestKind::kFinish, .connection = c.number});
  return 0;
}

void greynic_broker_disconnect(greynic_broker_connection* connection) {
  if (connection == nullptr) return;
  greynic_broker_connection& c = *connection;
  greynic_broker& broker = *c.broker;
  const std::lock_guard lock(broker.mutex);
  broker.take_events();
  std::erase(broker.changed, connection);
  if (c.over) return broker.destroy(connection);
  c.consumed += std::exchange(c.shown, 0);
  broker.tell_consumed(c, true);
  c.released = true;
  if (c.open) (void)c.attachment->post({.kind = RequestKind::kClose, .connection = c.number});
}

int greynic_broker_ready(greynic_broker* broker, struct greynic_broker_readiness* ready, int most) {
  std::unique_lock lock(broker->mutex);
  const bool lived = broker->attachment != nullptr;
  if (lived) {
    broker->attachment->stay_awake();
    broker->attachment->drain_socket();
  }
  int count = 0;
  for (int round = 0; round < 2 && count == 0; ++round) {
    broker->take_events();
    for (; count < most && !broker->changed_listeners.empty(); ++count) {
      greynic_broker_listener* listener = broker->changed_listeners.front();
      broker->changed_listeners.pop_front();
      listener->changed = false;
      ready[count] = {nullptr, listener, GREYNIC_BROKER_IN};
    }
    for (; count < most && !broker->changed.empty(); ++count) {
      greynic_broker_connection* c = broker->changed.front();
      broker->changed.pop_front();
      ready[count] = {c, nullptr, std::exchange(c->changed, 0)};
    }
    // A 0 promises that the descriptor will tell of what comes next.
    Attachment* const at = broker->attachment.get();
    if (count == 0 && at != nullptr && at->prepare_to_sleep(at->event_place())) break;
  }
  if (count == 0 && !broker->attachment) return static_cast<int>(fail_with(ECONNRESET));
  return count;
}

void greynic_broker_set_context(greynic_broker_connection* connection, void* context) {
  connection->context = context;
}
void* greynic_broker_context(greynic_broker_connection* connection) { return connection->context; }

}  // extern "C"
