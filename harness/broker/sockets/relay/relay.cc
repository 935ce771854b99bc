#include "relay/relay.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace greynic::broker::sockets {
namespace {

/// Told of whether one asks or not; so that 0 means that nothing is watched yet.
constexpr std::uint32_t kAtLeast = EPOLLHUP;

std::string text_of(const std::array<std::uint8_t, 16>& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = std::all_of(address.begin(), address.begin() + 10,
                              [](std::uint8_t byte) { return byte == 0; }) &&
                  address[10] == 0xff && address[11] == 0xff;
  inet_ntop(v4 ? AF_INET : AF_INET6, address.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

void tell(int socket, int error) {
  (void)::send(socket, &error, sizeof error, MSG_DONTWAIT | MSG_NOSIGNAL);
  close(socket);
}

/// A packet and what came with it, which is closed unless it is taken.
struct Packet {
  Wish wish;
  bool whole = false;  ///< as long as a wish is
  int count = 0;       ///< of descriptors
  int stream = -1;     ///< the first of them

  Packet() = default;
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;
  ~Packet() {
    if (stream >= 0) close(stream);
  }
};

void receive(int socket, Packet& packet) {
  iovec part{&packet.wish, sizeof packet.wish};
  // The kernel counts whole descriptors, so there is room for two where one fits with its padding.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
      int one = -1;
      std::memcpy(&one, reinterpret_cast<const char*>(head) + at, sizeof one);
      if (packet.count++ == 0) {
        packet.stream = one;
      } else {
        close(one);
      }
    }
  }
  packet.whole = got == static_cast<ssize_t>(sizeof packet.wish) &&
                 (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

}  // namespace

Relay::Relay(greynic_broker* broker, std::map<std::string, std::string> via, int wishes)
    : broker_(broker), via_(std::move(via)), wishes_(wishes), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  watch(wishes_, EPOLLIN);
  watch(greynic_broker_fd(broker_), EPOLLIN);
}

Relay::~Relay() {
  for (const auto& [socket, pair] : by_socket_) {
    close(socket);
    if (pair->answer >= 0) close(pair->answer);
  }
  close(epoll_);
}

void Relay::watch(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) {
    (void)epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
}

bool Relay::turn(int timeout_ms) {
  std::array<greynic_broker_readiness, 64> ready;
  for (;;) {
    const int count = greynic_broker_ready(broker_, ready.data(), ready.size());
    if (count < 0) return false;
    for (int i = 0; i < count; ++i) {
      const greynic_broker_readiness& one = ready[static_cast<std::size_t>(i)];
      if (one.listener != nullptr) accept_all(one.listener);
      const auto found = by_connection_.find(one.connection);
      if (found != by_connection_.end() && !move(*found->second)) end(*found->second);
    }
    if (count == 0) break;
  }
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), events.size(), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == wishes_) {
      take_wish();
    } else if (const auto found = by_socket_.find(fd); found != by_socket_.end()) {
      if (!move(*found->second)) end(*found->second);
    } else if (fd != greynic_broker_fd(broker_)) {
      answer_wish(fd);
    }
  }
  return true;
}

void Relay::take_wish() {
  const int socket = accept4(wishes_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) return;
  ucred who{};
  socklen_t bytes = sizeof who;
  const bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0;
  if (!known || who.uid != geteuid()) {
    close(socket);
    return;
  }
  watch(socket, EPOLLIN);
}

void Relay::answer_wish(int socket) {
  Packet packet;
  receive(socket, packet);
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
  const Wish& wish = packet.wish;
  if (packet.whole && wish.kind == Wish::Kind::kListen && packet.count == 0) {
    return tell(socket, start_listening(wish));
  }
  if (!packet.whole || wish.kind != Wish::Kind::kConnect || packet.count != 1) {
    return tell(socket, EPROTO);
  }
  const int error = start_connecting(wish, packet.stream, socket);
  if (error != 0) return tell(socket, error);
  packet.stream = -1;  // it is the pair's, and the answer comes when it is open
}

int Relay::start_listening(const Wish& wish) {
  Place& place = places_[wish.port];
  if (place.listener == nullptr) {
    place.listener = greynic_broker_listen(broker_, wish.port, 0);
    if (place.listener == nullptr) {
      const int error = errno;
      places_.erase(wish.port);
      return error;
    }
  }
  // The last who listens at a port gets its connections: one that came before has ended, or listens
  // by IPv4 and IPv6 and takes them at either.
  place.name = wish.name;
  place.name_bytes = std::min<socklen_t>(wish.name_bytes, sizeof place.name);
  return 0;
}

int Relay::start_connecting(const Wish& wish, int stream, int asker) {
  std::string host = text_of(wish.address);
  for (const char* key : {host.c_str(), "*"}) {
    if (const auto found = via_.find(key); found != via_.end()) {
      host = found->second;
      break;
    }
  }
  greynic_broker_connection* connection =
      greynic_broker_connect(broker_, host.c_str(), wish.port, GREYNIC_BROKER_NONBLOCK);
  if (connection == nullptr) return errno;
  auto pair = std::make_unique<Pair>();
  pair->socket = stream;
  pair->connection = connection;
  pair->answer = asker;
  by_connection_[connection] = pair.get();
  by_socket_[stream] = std::move(pair);
  return 0;
}

void Relay::accept_all(greynic_broker_listener* listener) {
  while (auto* connection = greynic_broker_accept(listener, GREYNIC_BROKER_NONBLOCK)) {
    const auto found = std::find_if(places_.begin(), places_.end(), [&](const auto& place) {
      return place.second.listener == listener;
    });
    sockaddr_in from{};
    from.sin_family = AF_INET;
    char text[INET6_ADDRSTRLEN] = "";
    if (greynic_broker_peer(connection, text, sizeof text) == 0) {
      inet_pton(AF_INET, text, &from.sin_addr);
    }
    from.sin_port = htons(static_cast<std::uint16_t>(32768 + accepted_++ % 28000));
    sockaddr_un own{};
    const socklen_t own_bytes = make_name(
        own, (static_cast<std::uint64_t>(getpid()) << 32) + accepted_, &from, sizeof from);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // The name is all that the program sees of the other side, so it is bound before.
    if (socket < 0 || bind(socket, reinterpret_cast<sockaddr*>(&own), own_bytes) != 0 ||
        connect(socket, reinterpret_cast<sockaddr*>(&found->second.name),
                found->second.name_bytes) != 0) {
      if (socket >= 0) close(socket);
      greynic_broker_disconnect(connection);  // nobody accepts, or not now
      continue;
    }
    auto pair = std::make_unique<Pair>();
    pair->socket = socket;
    pair->connection = connection;
    by_connection_[connection] = pair.get();
    Pair& made = *pair;
    by_socket_[socket] = std::move(pair);
    if (!move(made)) end(made);
  }
}

bool Relay::move(Pair& pair) {
  if (pair.answer >= 0) {
    const int state = greynic_broker_state(pair.connection);
    if (state < 0) {
      tell(std::exchange(pair.answer, -1), errno);
      return false;
    }
    if (state == 0) return true;
    tell(std::exchange(pair.answer, -1), 0);
  }
  const bool alive = to_program(pair) && to_broker(pair);
  if (!alive || (pair.program_ended && pair.far_ended && pair.bytes == 0)) {
    return false;
  }
  const bool takes = !pair.program_ended && !pair.full;
  const std::uint32_t events = kAtLeast | (takes ? EPOLLIN : 0U) | (pair.bytes > 0 ? EPOLLOUT : 0U);
  if (std::exchange(pair.watched, events) != events) watch(pair.socket, events);
  return true;
}

bool Relay::to_program(Pair& pair) {
  while (!pair.far_ended) {
    while (pair.bytes > 0) {
      const ssize_t put = ::send(pair.socket, pair.data, pair.bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put < 0) return errno == EAGAIN;
      pair.data += put;
      pair.bytes -= static_cast<std::size_t>(put);
    }
    const void* data = nullptr;
    const ssize_t got =
        greynic_broker_recv_zero_copy(pair.connection, &data, 1 << 20, GREYNIC_BROKER_NONBLOCK);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) {
      pair.far_ended = true;
      (void)shutdown(pair.socket, SHUT_WR);
      break;
    }
    pair.data = static_cast<const char*>(data);
    pair.bytes = static_cast<std::size_t>(got);
  }
  return true;
}

bool Relay::to_broker(Pair& pair) {
  while (!pair.program_ended) {
    void* place = nullptr;
    const ssize_t room = greynic_broker_room(pair.connection, &place);
    pair.full = room < 0;
    if (room < 0) return errno == EAGAIN;
    const ssize_t got = ::recv(pair.socket, place, static_cast<std::size_t>(room), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) {
      pair.program_ended = true;
      return greynic_broker_finish(pair.connection) == 0;
    }
    if (greynic_broker_filled(pair.connection, static_cast<std::size_t>(got)) != 0) return false;
  }
  return true;
}

void Relay::end(Pair& pair) {
  by_connection_.erase(pair.connection);
  greynic_broker_disconnect(pair.connection);
  close(pair.socket);
  by_socket_.erase(pair.socket);
}

}  // namespace greynic::broker::sockets
