#include "client.h"

#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

using greynic::broker::client::Attachment;
using greynic::broker::local::Event;
using greynic::broker::local::EventKind;
using greynic::broker::local::Request;
using greynic::broker::local::RequestKind;
using greynic::broker::local::Sleep;

namespace {

/// A wake-up costs some 5 us, so a caller that waits looks for as long at first.
constexpr std::chrono::nanoseconds kLookFor = std::chrono::microseconds(20);
/// It sleeps on its word so long, which is the cheaper way; then at the socket, which also tells when
/// the broker dies.
constexpr std::chrono::nanoseconds kOnWordFor = std::chrono::milliseconds(10);
/// For the other side to take what it was sent, when the client closes.
constexpr auto kLingerFor = std::chrono::seconds(5);
constexpr auto kReconnectFor = std::chrono::seconds(10);

}  // namespace

void greynic_broker::note(greynic_broker_connection& connection, int what) {
  if (connection.released) return;
  if (connection.changed == 0) changed.push_back(&connection);
  connection.changed |= what;
}

void greynic_broker::note(greynic_broker_listener& listener) {
  if (!listener.changed) changed_listeners.push_back(&listener);
  listener.changed = true;
}

void greynic_broker::take_events() {
  if (!attachment) return;
  if (attachment->has_event()) {
    while (attachment->has_event()) take(attachment->next_event());
    attachment->release_events();
  }
  if (attachment->dead()) lose_broker();
}

void greynic_broker::take(const Event& event) {
  switch (event.kind) {
    case EventKind::kListening:
      if (const auto found = listeners.find(event.port); found != listeners.end()) {
        found->second->answered = true;
        found->second->error = event.error;
      }
      return;
    case EventKind::kIncoming:
      if (const auto found = listeners.find(event.port); found != listeners.end()) {
        greynic_broker_listener::Incoming one{
            event.connection, static_cast<greynic::Transport>(event.transport), {}};
        std::memcpy(one.from.data(),
                    reinterpret_cast<const std::byte*>(&event) + greynic::broker::local::kAddressAt,
                    one.from.size());
        found->second->incoming.push_back(one);
        note(*found->second);
      } else {
        (void)attachment->post({.kind = RequestKind::kClose, .connection = event.connection});
      }
      return;
    case EventKind::kOpened:
    case EventKind::kFailed: {
      const auto found = by_cookie.find(event.value);
      if (found == by_cookie.end()) return;
      greynic_broker_connection* connection = found->second;
      by_cookie.erase(found);
      if (event.kind == EventKind::kFailed) return end(connection, event.error);
      connection->number = event.connection;
      connection->open = true;
      by_number[event.connection] = connection;
      if (connection->released) {
        (void)attachment->post({.kind = RequestKind::kClose, .connection = event.connection});
      } else if (connection->wants_finish) {
        (void)attachment->post({.kind = RequestKind::kFinish, .connection = event.connection});
      }
      return note(*connection, GREYNIC_BROKER_OUT);
    }
    case EventKind::kLent:
      return lent.take_answer(event.connection, event.error);
    case EventKind::kReturned:
      return lent.take_answer(event.connection, ENOENT);
    default:
      break;
  }
  const auto found = by_number.find(event.connection);
  if (found == by_number.end()) {
    // One that ended before it was accepted.
    for (const auto& [port, listener] : listeners) {
      if (event.kind != EventKind::kClosed) break;
      std::erase_if(listener->incoming,
                    [&](const auto& one) { return one.number == event.connection; });
    }
    return;
  }
  greynic_broker_connection& connection = *found->second;
  if (event.kind == EventKind::kReceived) {
    connection.received = event.value;
    note(connection, GREYNIC_BROKER_IN);
  } else if (event.kind == EventKind::kSent) {
    connection.sent = event.value;
    note(connection, GREYNIC_BROKER_OUT);
  } else if (event.kind == EventKind::kHeld) {
    connection.held = {event.error, event.value == 1};
  } else if (event.kind == EventKind::kFinished) {
    connection.finished = true;
    note(connection, GREYNIC_BROKER_IN);
  } else if (event.kind == EventKind::kClosed) {
    by_number.erase(found);
    end(&connection, event.error);
  }
}

/// The number is void and the rings are free; the handle lives until its owner lets it go.
void greynic_broker::end(greynic_broker_connection* connection, int error) {
  connection->over = true;
  connection->error = error;
  if (connection->released) return destroy(connection);
  note(*connection, GREYNIC_BROKER_IN | GREYNIC_BROKER_OUT);
}

void greynic_broker::lose_broker() {
  reason = attachment->reason().empty() ? "the broker has ended" : attachment->reason();
  attachment.reset();
  lent.lose_broker();
  by_number.clear();
  by_cookie.clear();
  const auto all = connections;
  for (greynic_broker_connection* connection : all) {
    if (!connection->over) end(connection, ECONNRESET);
  }
  for (const auto& [port, listener] : listeners) {
    listener->incoming.clear();
    note(*listener);
  }
  woken.notify_all();
}

/// Looks for events for a while, then sleeps until the broker wakes it. Not under the lock; by one at
/// a time.
bool greynic_broker::doze(Attachment& at, std::uint32_t place) {
  using Clock = std::chrono::steady_clock;
  // Where others want this processor it is often they for whom we wait.
  const auto until = Clock::now() + look_for;
  while (!at.has_event_after(place) && Clock::now() < until) sched_yield();
  const auto begun = Clock::now();
  bool slept = false, at_socket = false;
  for (const bool on_word : {true, false}) {
    if (!at.prepare_to_sleep(place, Sleep::kThroughSent, on_word)) break;
    // Who begins to wait for kSent now sees that we sleep, or is seen here.
    if (wait_for_sent > 0) {
      at.sleep_lightly();
      if (at.has_event_after(place)) break;
    }
    slept = true;
    if (on_word && at.sleep_on_word(kOnWordFor)) break;
    if (on_word) continue;
    at_socket = true;
    pollfd entry{at.socket(), POLLIN, 0};
    (void)poll(&entry, 1, -1);
  }
  // To look on would have paid if it was woken soon; else others need the processor more.
  // A single processor is better left to them at once.
  static const bool alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
  if (slept) look_for = Clock::now() - begun < kLookFor && !alone ? kLookFor : look_for / 2;
  at.stay_awake();
  return at_socket;
}

bool greynic_broker::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done,
                          For what) {
  if (what == For::kAll) ++wait_for_sent;
  const bool came = wait_for_events(lock, done);
  if (what == For::kAll) --wait_for_sent;
  return came;
}

bool greynic_broker::wait_for_events(std::unique_lock<std::mutex>& lock,
                                     const std::function<bool()>& done) {
  if (attachment && wait_for_sent > 0) attachment->sleep_lightly();
  for (;;) {
    take_events();
    if (done()) return true;
    if (!attachment) return false;
    if (somebody_waits_at_socket) {
      woken.wait(lock);
      continue;
    }
    somebody_waits_at_socket = true;
    const std::shared_ptr<Attachment> kept = attachment;
    const std::uint32_t place = kept->event_place();
    lock.unlock();
    const bool by_byte = doze(*kept, place);
    lock.lock();
    if (by_byte) kept->drain_socket(1);
    somebody_waits_at_socket = false;
    woken.notify_all();
  }
}

void greynic_broker::linger(std::unique_lock<std::mutex>& lock) {
  const auto until = std::chrono::steady_clock::now() + kLingerFor;
  const auto is_under_way = [](const greynic_broker_connection* one) { return one->released; };
  for (take_events(); std::any_of(connections.begin(), connections.end(), is_under_way) &&
                      std::chrono::steady_clock::now() < until;
       take_events()) {
    const std::shared_ptr<Attachment> kept = attachment;
    const std::uint32_t place = kept->event_place();
    lock.unlock();
    if (kept->prepare_to_sleep(place)) {
      pollfd entry{kept->socket(), POLLIN, 0};
      (void)poll(&entry, 1, 100);
    }
    kept->stay_awake();
    lock.lock();
    kept->drain_socket();
  }
}

bool greynic_broker::be_attached(std::unique_lock<std::mutex>& lock) {
  take_events();
  if (attachment) return true;
  const auto until = std::chrono::steady_clock::now() + kReconnectFor;
  while (reconnects && !attachment && std::chrono::steady_clock::now() < until) {
    attachment = Attachment::open(socket, segment_bytes, wants_huge_pages, reason);
    if (attachment) {
      take_on_costs();
      lent.hand_over(*attachment);
      for (const auto& [port, listener] : listeners) {
        listener->attachment = attachment;
        listener->answered = false;
        (void)attachment->post({.kind = RequestKind::kListen, .port = port});
      }
      return true;
    }
    lock.unlock();
    const timespec moment{0, 50'000'000};
    nanosleep(&moment, nullptr);
    lock.lock();
  }
  if (!attachment) errno = ECONNRESET;
  return attachment != nullptr;
}

greynic_broker_connection* greynic_broker::make_connection(void* memory, std::size_t bytes) {
  auto made = std::make_unique<greynic_broker_connection>();
  made->broker = this;
  made->attachment = attachment;
  if (memory != nullptr) {
    made->own_receive_ring = false;
    made->receive_ring = attachment->part_at(memory);
    if (bytes == 0 || bytes > made->receive_ring.bytes) {
      errno = EINVAL;
      return nullptr;
    }
    made->receive_ring.bytes = static_cast<std::uint32_t>(bytes);
  } else {
    made->receive_ring = attachment->take(ring_bytes);
  }
  made->send_ring = attachment->take(ring_bytes);
  if (made->send_ring.bytes == 0 || made->receive_ring.bytes == 0) {
    if (made->own_receive_ring) attachment->give_back(made->receive_ring);
    attachment->give_back(made->send_ring);
    errno = ENOBUFS;
    return nullptr;
  }
  connections.insert(made.get());
  return made.release();
}

void greynic_broker::destroy(greynic_broker_connection* connection) {
  if (connection->own_receive_ring) connection->attachment->give_back(connection->receive_ring);
  connection->attachment->give_back(connection->send_ring);
  std::erase(changed, connection);
  connections.erase(connection);
  delete connection;
}

void greynic_broker::take_on_costs() {
  lending = greynic::broker::client::Lending(attachment->costs());
}

/// The other side learns of room a quarter of the ring at a time, so more words are of no use.
void greynic_broker::tell_consumed(greynic_broker_connection& connection, bool at_once) {
  const std::uint64_t untold = connection.consumed - connection.told;
  if (untold == 0 || (!at_once && untold < connection.receive_ring.bytes / 8)) return;
  if (connection.over || !connection.open) return;
  connection.told = connection.consumed;
  (void)connection.attachment->post({.kind = RequestKind::kConsume,
                                     .connection = connection.number,
                                     .value = connection.consumed});
}
