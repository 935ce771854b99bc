// Sends that copy nothing: of memory that a program lends to its broker, and in place.

#include <algorithm>
#include <cerrno>

#include "client.h"

using greynic::broker::client::Lending;
using greynic::broker::client::LentMemory;
using greynic::broker::local::RequestKind;

ssize_t greynic_broker::send_from(std::unique_lock<std::mutex>& lock, greynic_broker_connection& c,
                                  const void* data, std::size_t bytes) {
  bytes = std::min<std::size_t>(bytes, greynic::broker::local::kMostSentFrom);
  auto place = lent.find(data, bytes);
  Lending::Choice choice = Lending::Choice::kReuse;
  if (place) {
    choice = lending.choose(data, bytes);
  } else if (bytes >= Lending::kLeastBytes && attachment->holds(data) &&
             attachment->holds(static_cast<const std::byte*>(data) + bytes - 1)) {
    place = LentMemory::Place{0, attachment->offset_of(data)};
  }
  if (!place || choice == Lending::Choice::kCopy) return 0;
  c.held.reset();
  (void)c.attachment->post({.kind = RequestKind::kSendFrom,
                            .connection = c.number,
                            .value = place->offset,
                            .send = {place->region, static_cast<std::uint32_t>(bytes)}});
  (void)wait(lock, [&] { return c.over || c.held; });
  if (!c.over && c.held->error != 0) {
    lending.was_forgotten(data);
    return 0;
  }
  if (!c.over) {
    if (choice == Lending::Choice::kReuse && c.held->registered) lending.was_forgotten(data);
    c.written += bytes;
    c.past_ring += bytes;
    (void)wait(lock, [&] { return c.over || c.sent == c.written; });
  }
  if (!c.over || c.sent == c.written) return static_cast<ssize_t>(bytes);
  errno = c.error != 0 ? c.error : EPIPE;
  return -1;
}

extern "C" {

ssize_t greynic_broker_room(greynic_broker_connection* connection, void** place) {
  greynic_broker_connection& c = *connection;
  const std::lock_guard lock(c.broker->mutex);
  c.broker->take_events();
  const std::uint64_t ring = c.send_ring.bytes, at = (c.written - c.past_ring) % ring;
  const std::uint64_t room = std::min(ring - (c.written - c.sent), ring - at);
  const int error = !c.is_stream()   ? EOPNOTSUPP
                    : c.over         ? (c.error != 0 ? c.error : EPIPE)
                    : c.wants_finish ? EPIPE
                                     : EAGAIN;
  if (error != EAGAIN || !c.open || room == 0) {
    errno = error;
    return -1;
  }
  *place = c.attachment->at(c.send_ring) + at;
  return static_cast<ssize_t>(room);
}

int greynic_broker_filled(greynic_broker_connection* connection, size_t bytes) {
  greynic_broker_connection& c = *connection;
  const std::lock_guard lock(c.broker->mutex);
  // More than room() has said is more than the ring holds.
  if (c.over || bytes > c.send_ring.bytes - (c.written - c.sent)) {
    errno = c.over ? (c.error != 0 ? c.error : EPIPE) : EINVAL;
    return -1;
  }
  c.written += bytes;
  (void)c.attachment->post(
      {.kind = RequestKind::kSend, .connection = c.number, .value = c.written});
  return 0;
}

void* greynic_broker_lend(greynic_broker* broker, size_t bytes) {
  std::unique_lock lock(broker->mutex);
  if (!broker->be_attached(lock)) return nullptr;
  if (bytes == 0) {
    errno = EINVAL;
    return nullptr;
  }
  std::byte* memory = broker->lent.make(*broker->attachment, bytes);
  if (memory == nullptr) return nullptr;
  (void)broker->wait(lock, [&] { return broker->lent.state(memory) != EINPROGRESS; });
  const int error = broker->lent.state(memory);
  if (error == 0) return memory;
  broker->lent.give_up(memory);
  errno = error;
  return nullptr;
}

int greynic_broker_take_back(greynic_broker* broker, void* memory) {
  std::unique_lock lock(broker->mutex);
  const auto is_answered = [&] { return broker->lent.state(memory) != EINPROGRESS; };
  (void)broker->wait(lock, is_answered);  // a new broker may not have it yet
  if (broker->lent.state(memory) == EINVAL) {
    errno = EINVAL;
    return -1;
  }
  if (broker->attachment) broker->lent.ask_back(*broker->attachment, memory);
  (void)broker->wait(lock, is_answered);
  broker->lent.give_up(memory);
  // New memory may come to lie there.
  broker->lending.forget_all();
  return 0;
}

}  // extern "C"
