#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

std::atomic<Nic*> the_nic{nullptr};
bool parent_was_here = false;  ///< a parent used the RNIC before it forked us

Ring* map_ring(int fd) {
  void* const memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Ring*>(memory);
}

}  // namespace

Nic& Nic::instance() {
  static std::mutex making;
  if (Nic* const there = the_nic.load(std::memory_order_acquire)) return *there;
  const std::lock_guard lock(making);
  if (Nic* const there = the_nic.load(std::memory_order_acquire)) return *there;
  static std::once_flag once;
  std::call_once(once, [] {
    // A child has its parent's descriptors, but neither its thread nor its place in the lab.
    pthread_atfork(nullptr, nullptr, [] {
      if (const Nic* const parents = the_nic.exchange(nullptr)) {
        if (parents->socket_ >= 0) close(parents->socket_);
        parent_was_here = parents->started_;
        forget_connections();
      }
    });
  });
  Nic* const made = new Nic;  // never destroyed: its thread runs until the process ends
  the_nic.store(made, std::memory_order_release);
  if (parent_was_here && made->join()) made->start_thread();
  return *made;
}

bool Nic::join() {
  if (socket_ >= 0) return true;
  const char* const name = std::getenv(kSocketVariable);
  const char* const number = std::getenv(kHostVariable);
  if (!name || !number) return false;
  const int fd = connect_to(name);
  Message hello{.kind = MessageKind::kHello};
  hello.host = static_cast<std::uint32_t>(std::strtoul(number, nullptr, 10));
  Message reply;
  Descriptors none;
  if (fd < 0 || !send_message(fd, hello, bell()) || !receive_message(fd, reply, none) ||
      reply.error != 0) {
    std::fprintf(stderr, "greynic lab: no virtual RNIC here: the lab `%s` is over or full\n", name);
    if (fd >= 0) close(fd);
    return false;
  }
  socket_ = fd;
  host = hello.host;
  slot = reply.slot;
  network = reply.network;
  card = reply.card;
  return true;
}

void Nic::start_thread() {
  if (started_) return;
  started_ = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // In virtual time the twin moves the bytes, and only the broker is heard.
  std::thread([this, moves = !turns::taken()] { moves ? loop() : hear(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Nic::tell_broker(const Message& message, int first, int second) {
  return socket_ >= 0 && send_message(socket_, message, first, second);
}

Peer& Nic::peer(std::uint32_t of_slot) {
  const auto [at, is_new] = peers_.try_emplace(of_slot);
  Peer& found = at->second;
  if (is_new) found.slot = of_slot;
  if (found.out || found.gone) return found;
  if (of_slot == slot) {
    found.out = found.in = new Ring;
    found.bell = bell();
    return found;
  }
  const int fd = memfd_create("greynic-lab-ring", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, sizeof(Ring)) == 0) found.out = map_ring(fd);
  if (found.out) new (found.out) Ring;
  if (!found.out || !tell_broker({.kind = MessageKind::kOpenRing, .slot = of_slot}, fd)) {
    found.gone = true;
  }
  if (fd >= 0) close(fd);
  return found;
}

void Nic::wake(const Peer& to) {
  if (to.bell < 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(to.bell, &one, sizeof one);
}

Packet* Nic::reserve(Peer& to, std::uint32_t payload) {
  if (Packet* const packet = to.out->reserve(payload)) return packet;
  to.out->writer_waits.store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return to.out->reserve(payload);
}

void Nic::publish(Peer& to, const Packet& packet) {
  to.out->publish(packet);
  moved_ = true;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (to.out->reader_sleeps.load(std::memory_order_relaxed) != 0 &&
      to.out->reader_sleeps.exchange(0) != 0) {
    wake(to);
  }
}

bool Nic::receive(Peer& from, int most) {
  if (!from.in) return false;
  int count = 0;
  for (; count < most; ++count) {
    const Packet* const packet = from.in->front();
    if (!packet) break;
    if (packet->kind >= PacketKind::kAck) {
      on_answer(*packet);
    } else {
      on_request(*packet);
    }
    from.in->pop(*packet);
  }
  if (count == 0) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (from.in->writer_waits.load(std::memory_order_relaxed) != 0 &&
      from.in->writer_waits.exchange(0) != 0) {
    wake(from);
  }
  return true;
}

bool Nic::progress() {
  moved_ = unfinished_ = false;
  for (auto& [of_slot, from] : peers_) moved_ = receive(from, 64) || moved_;
  run_timers();
  while (!orphans_.empty()) {
    Peer& to = peer(slot_of(orphans_.front().to_qp));
    if (!to.gone) {
      Packet* const packet = reserve(to, 0);
      if (!packet) break;
      const std::uint32_t bytes = packet->bytes;
      *packet = orphans_.front();
      packet->bytes = bytes;
      publish(to, *packet);
    }
    orphans_.pop_front();
  }
  std::vector<Qp*> turn;
  turn.swap(active_);
  for (Qp* const qp : turn) qp->queued = false;
  for (Qp* const qp : turn) {
    if (answer(*qp)) requester(*qp);
  }
  return moved_;
}

void Nic::begin() {
  progress();
  if (unfinished_) nudge();
}

void Nic::help() {
  if (!mutex.try_lock()) return;
  begin();
  mutex.unlock();
}

void Nic::loop() {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : {bell(), socket_}) {
    epoll_event interest{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &interest);
  }
  for (;;) {
    wait(poll);
    mutex.lock();
    while (progress()) {
      if (callers.load(std::memory_order_relaxed) == 0) continue;
      mutex.unlock();
      sched_yield();
      mutex.lock();
    }
    mutex.unlock();
  }
}

void Nic::hear() {
  for (;;) {
    Message message;
    Descriptors descriptors;
    if (!receive_message(socket_, message, descriptors)) return;  // the lab is over
    on_message(message, descriptors);
  }
}

void Nic::wait(int poll) {
  std::chrono::milliseconds patience = std::chrono::hours(1);
  {
    const std::lock_guard lock(mutex);
    bool more = false;
    for (auto& [of_slot, from] : peers_) {
      if (!from.in) continue;
      from.in->reader_sleeps.store(1, std::memory_order_seq_cst);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      more = more || !from.in->empty();
    }
    const Clock::time_point first = next_timer();
    if (more) {
      patience = std::chrono::milliseconds(0);
    } else if (first != Clock::time_point::max()) {
      patience = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()),
                            std::chrono::milliseconds(0), patience);
    }
  }
  std::array<epoll_event, 2> events{};
  const int count = epoll_wait(poll, events.data(), events.size(), static_cast<int>(patience.count()));
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.fd == bell()) {
      std::uint64_t rings = 0;
      [[maybe_unused]] const ssize_t got = read(bell(), &rings, sizeof rings);
      continue;
    }
    Message message;
    Descriptors descriptors;
    if (!receive_message(socket_, message, descriptors)) {
      // The lab is over. Rings that are open stay so.
      epoll_ctl(poll, EPOLL_CTL_DEL, socket_, nullptr);
      continue;
    }
    on_message(message, descriptors);
  }
}

void Nic::on_message(const Message& message, Descriptors& descriptors) {
  switch (message.kind) {
    case MessageKind::kRing: {
      const std::lock_guard lock(mutex);
      Peer& from = peers_[message.slot];
      from.slot = message.slot;
      if (from.gone) from = {.slot = message.slot};  // another process, in the slot of a dead one
      const int fd = descriptors.take(0);
      from.in = map_ring(fd);
      close(fd);
      if (from.bell < 0) from.bell = descriptors.take(1);
      return;
    }
    case MessageKind::kRingOpened: {
      const std::lock_guard lock(mutex);
      Peer& to = peers_[message.slot];
      if (to.bell < 0) to.bell = descriptors.take(0);
      wake(to);  // for what was written while its bell was not known
      return;
    }
    case MessageKind::kGone: {
      const std::lock_guard lock(mutex);
      on_gone(message.slot);
      break;
    }
    default:
      break;
  }
  on_connection_message(message);
}

void Nic::on_gone(std::uint32_t of_slot) {
  Peer& from = peers_[of_slot];
  while (receive(from, 64)) {
  }
  for (Ring* const ring : {from.in, from.out}) {
    if (ring) munmap(ring, sizeof(Ring));
  }
  if (from.bell >= 0) close(from.bell);
  from = {.slot = of_slot, .gone = true};
  for (const auto& [number, qp] : qps) {
    if (slot_of(qp->attributes.dest_qp_num) != of_slot || !qp->reliable()) continue;
    for (const SendWork& work : qp->sends) {
      if (!work.done && work.numbered) {
        lost(*qp, work.message);
        break;
      }
    }
  }
}

}  // namespace greynic::lab
