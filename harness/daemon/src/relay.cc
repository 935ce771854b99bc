#include "relay.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

namespace greynic::daemon {
namespace {

constexpr std::size_t kPiece = 64 << 10;

/// Names a socket "RANDOM/PEER" in the abstract namespace: nobody can have taken a name that nobody
/// can guess.
bool name_it(int socket, const std::string& peer) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != ssize_t{sizeof number}) return false;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("greynic-{:016x}/{}", number, peer);
  if (text.size() + 1 > sizeof name.sun_path) return false;
  std::copy(text.begin(), text.end(), name.sun_path + 1);
  const auto length = offsetof(sockaddr_un, sun_path) + 1 + text.size();
  return bind(socket, reinterpret_cast<sockaddr*>(&name), static_cast<socklen_t>(length)) == 0;
}

}  // namespace

std::unique_ptr<Relay> Relay::open(int outer, const std::string& peer, const Watch& watch,
                                   int& given) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return nullptr;
  }
  if (!name_it(ends[0], peer)) {
    for (const int end : ends) close(end);
    return nullptr;
  }
  given = ends[1];
  return std::unique_ptr<Relay>(new Relay(outer, ends[0], watch));
}

Relay::Relay(int outer, int inner, const Watch& watch)
    : poll_(watch.poll),
      outer_{.socket = outer, .key = watch.outer, .unsaid = {}},
      inner_{.socket = inner, .key = watch.inner, .unsaid = {}} {
  wait_for_both();
}

Relay::~Relay() {
  wait(outer_, 0);
  wait(inner_, 0);
  close(inner_.socket);
}

Relay::Went Relay::carry(End end, std::uint32_t events, std::uint64_t granted,
                         std::uint64_t& carried) {
  Side& here = end == End::kOuter ? outer_ : inner_;
  Side& there = end == End::kOuter ? inner_ : outer_;
  if ((events & EPOLLOUT) != 0 && !say(here)) return Went::kEnded;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && there.unsaid.empty()) {
    const bool inwards = end == End::kOuter;
    const auto heard = hear(here, there, inwards ? granted : kPiece);
    if (!heard || !say(there)) return Went::kEnded;
    if (inwards && *heard > granted) return Went::kTooMuch;
    if (inwards) carried += *heard;
  }
  wait_for_both();
  return Went::kOn;
}

/// False when it hears no more.
bool Relay::say(Side& side) {
  while (!side.unsaid.empty()) {
    const ssize_t sent =
        send(side.socket, side.unsaid.data(), side.unsaid.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    side.unsaid.erase(0, static_cast<std::size_t>(sent));
  }
  side.unsaid.shrink_to_fit();
  return true;
}

/// Empty at its end. More than `most`: so much is there, and was left there.
std::optional<std::size_t> Relay::hear(const Side& from, Side& to, std::uint64_t most) {
  std::array<char, kPiece> piece;
  const std::size_t room = std::clamp<std::uint64_t>(most, 1, piece.size());
  const int how = MSG_DONTWAIT | (most == 0 ? MSG_PEEK : 0);
  const ssize_t got = recv(from.socket, piece.data(), room, how);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) return {};
  const auto bytes = static_cast<std::size_t>(got);
  if (most > 0) to.unsaid.assign(piece.data(), bytes);
  return bytes;
}

/// An end that waits for nothing is taken out: the epoll would go on telling that it has closed.
void Relay::wait(Side& side, std::uint32_t events) const {
  if (events == side.waits_for) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = side.key;
  const int how = events == 0 ? EPOLL_CTL_DEL : side.waits_for == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  epoll_ctl(poll_, how, side.socket, &event);
  side.waits_for = events;
}

void Relay::wait_for_both() {
  const auto wanted = [](const Side& side, const Side& other) {
    return (other.unsaid.empty() ? EPOLLIN : 0U) | (side.unsaid.empty() ? 0U : EPOLLOUT);
  };
  wait(outer_, wanted(outer_, inner_));
  wait(inner_, wanted(inner_, outer_));
}

}  // namespace greynic::daemon
