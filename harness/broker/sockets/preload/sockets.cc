// TCP calls of an unmodified program, over a broker. connect and listen put a local socket in the
// place of the TCP socket, under the same descriptor, and the relay of `greynic broker run` carries
// what goes through it. All else (read, write, epoll, select, sendfile, fork) is the kernel's own
// work on that local socket. The other calls here let the program see TCP addresses and options.

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "names.h"

namespace {

using namespace greynic::broker::sockets;

#define OURS __attribute__((visibility("default")))

long plain(long number, long a, long b, long c, long d = 0, long e = 0) {
  return syscall(number, a, b, c, d, e);
}
template <typename T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

std::uint64_t fresh_number() {
  std::uint64_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

int option(int fd, int name) {
  int value = -1;
  socklen_t bytes = sizeof value;
  return plain(SYS_getsockopt, fd, SOL_SOCKET, name, word(&value), word(&bytes)) == 0 ? value : -1;
}

bool is_tcp(int fd) {
  const int domain = option(fd, SO_DOMAIN);
  return (domain == AF_INET || domain == AF_INET6) && option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

/// The TCP address of a local socket of ours (SYS_getsockname or SYS_getpeername).
bool address_of(long call, int fd, sockaddr_storage& address, socklen_t& bytes) {
  sockaddr_un name{};
  socklen_t name_bytes = sizeof name;
  return plain(call, fd, word(&name), word(&name_bytes)) == 0 &&
         read_name(name, name_bytes, address, bytes);
}

bool is_ours(int fd) {
  sockaddr_storage address;
  socklen_t bytes = 0;
  return option(fd, SO_DOMAIN) == AF_UNIX && address_of(SYS_getsockname, fd, address, bytes);
}

void hand_out(const sockaddr_storage& from, socklen_t bytes, sockaddr* into, socklen_t* room) {
  if (into == nullptr || room == nullptr) return;
  std::memcpy(into, &from, std::min(bytes, *room));
  *room = bytes;
}

void take_over(const sockaddr* from, Wish& wish) {
  if (from->sa_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(from);
    wish.port = ntohs(v4.sin_port);
    wish.address[10] = wish.address[11] = 0xff;
    std::memcpy(wish.address.data() + 12, &v4.sin_addr, 4);
  } else {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(from);
    wish.port = ntohs(v6.sin6_port);
    std::memcpy(wish.address.data(), &v6.sin6_addr, 16);
  }
}

/// What the relay says to a wish; an error number.
int ask(const Wish& wish, int stream) {
  const char* relay = std::getenv(kRelayVariable);
  if (relay == nullptr) return ENETDOWN;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s", relay);
  const auto bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(relay));
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = ENETDOWN;
  if (plain(SYS_connect, fd, word(&name), bytes) == 0) {
    iovec part{const_cast<Wish*>(&wish), sizeof wish};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (stream >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof stream);
      std::memcpy(CMSG_DATA(head), &stream, sizeof stream);
    }
    if (sendmsg(fd, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof wish)) {
      ssize_t got = 0;
      do {
        got = recv(fd, &error, sizeof error, 0);
      } while (got < 0 && errno == EINTR);
      if (got != static_cast<ssize_t>(sizeof error)) error = ENETDOWN;
    }
  }
  close(fd);
  return error;
}

/// Puts a local socket under the descriptor of the TCP socket, which keeps its flags.
int replace(int fd, int local) {
  const int flags = fcntl(fd, F_GETFL), own = fcntl(fd, F_GETFD);
  (void)fcntl(local, F_SETFL, fcntl(local, F_GETFL) | (flags & O_NONBLOCK));
  const int done = dup3(local, fd, (own & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  close(local);
  return done < 0 ? -1 : 0;
}

int fail_with(int error) {
  errno = error;
  return -1;
}

int connect_over(int fd, const sockaddr* to, socklen_t to_bytes) {
  sockaddr_storage own{};
  socklen_t own_bytes = sizeof own;
  (void)plain(SYS_getsockname, fd, word(&own), word(&own_bytes));
  const std::uint64_t number = fresh_number();
  auto& port = own.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(own).sin_port
                                        : reinterpret_cast<sockaddr_in6&>(own).sin6_port;
  if (port == 0) port = htons(static_cast<std::uint16_t>(32768 + number % 28000));
  sockaddr_un near{}, far{};
  const socklen_t near_bytes = make_name(near, number, &own, own_bytes);
  const socklen_t far_bytes = make_name(far, number + 1, to, std::min<socklen_t>(to_bytes, 28));
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int stream = -1, error = 0;
  const bool made = listener >= 0 && local >= 0 &&
                    plain(SYS_bind, listener, word(&far), far_bytes) == 0 &&
                    plain(SYS_listen, listener, 1, 0) == 0 &&
                    plain(SYS_bind, local, word(&near), near_bytes) == 0 &&
                    plain(SYS_connect, local, word(&far), far_bytes) == 0;
  if (made) stream = static_cast<int>(plain(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC));
  if (stream < 0) error = errno;
  close(listener);
  if (stream >= 0) {
    Wish wish{.kind = Wish::Kind::kConnect};
    take_over(to, wish);
    error = ask(wish, stream);
    close(stream);
  }
  if (error == 0) return replace(fd, local);
  close(local);
  return fail_with(error);
}

int listen_over(int fd, int backlog) {
  sockaddr_storage own{};
  socklen_t own_bytes = sizeof own;
  if (plain(SYS_getsockname, fd, word(&own), word(&own_bytes)) != 0) return -1;
  Wish wish{.kind = Wish::Kind::kListen};
  take_over(reinterpret_cast<const sockaddr*>(&own), wish);
  // A port of the kernel's choice keeps its number; the TCP port itself is given back.
  if (wish.port == 0) {
    if (plain(SYS_listen, fd, backlog, 0) != 0) return -1;
    (void)plain(SYS_getsockname, fd, word(&own), word(&own_bytes));
    take_over(reinterpret_cast<const sockaddr*>(&own), wish);
  }
  wish.name_bytes = make_name(wish.name, fresh_number(), &own, own_bytes);
  const int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int error = 0;
  if (local < 0 || plain(SYS_bind, local, word(&wish.name), wish.name_bytes) != 0 ||
      plain(SYS_listen, local, std::max(backlog, 16), 0) != 0) {
    error = errno;
  } else {
    error = ask(wish, -1);
  }
  if (error == 0) return replace(fd, local);
  close(local);
  return fail_with(error);
}

}  // namespace

extern "C" {

OURS int connect(int fd, const sockaddr* to, socklen_t bytes) {
  const bool wanted =
      to != nullptr && bytes >= sizeof(sockaddr_in) &&
      (to->sa_family == AF_INET || (to->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)));
  if (wanted && is_tcp(fd)) return connect_over(fd, to, bytes);
  if (wanted && is_ours(fd)) return fail_with(EISCONN);
  return static_cast<int>(plain(SYS_connect, fd, word(to), bytes));
}

OURS int listen(int fd, int backlog) {
  if (is_tcp(fd)) return listen_over(fd, backlog);
  return static_cast<int>(plain(SYS_listen, fd, backlog, 0));
}

OURS int accept4(int fd, sockaddr* from, socklen_t* bytes, int flags) {
  sockaddr_un name{};
  socklen_t name_bytes = sizeof name;
  if (!is_ours(fd)) {
    return static_cast<int>(plain(SYS_accept4, fd, word(from), word(bytes), flags));
  }
  const auto made = static_cast<int>(plain(SYS_accept4, fd, word(&name), word(&name_bytes), flags));
  sockaddr_storage address;
  socklen_t address_bytes = 0;
  if (made >= 0 && read_name(name, name_bytes, address, address_bytes)) {
    hand_out(address, address_bytes, from, bytes);
  }
  return made;
}

OURS int accept(int fd, sockaddr* from, socklen_t* bytes) { return accept4(fd, from, bytes, 0); }

OURS int getsockname(int fd, sockaddr* into, socklen_t* room) {
  sockaddr_storage address;
  socklen_t bytes = 0;
  if (!address_of(SYS_getsockname, fd, address, bytes)) {
    return static_cast<int>(plain(SYS_getsockname, fd, word(into), word(room)));
  }
  hand_out(address, bytes, into, room);
  return 0;
}

OURS int getpeername(int fd, sockaddr* into, socklen_t* room) {
  sockaddr_storage address;
  socklen_t bytes = 0;
  if (!address_of(SYS_getpeername, fd, address, bytes)) {
    return static_cast<int>(plain(SYS_getpeername, fd, word(into), word(room)));
  }
  hand_out(address, bytes, into, room);
  return 0;
}

OURS int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) {
  const long done = plain(SYS_setsockopt, fd, level, name, word(value), bytes);
  const bool of_tcp = level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6;
  if (done < 0 && of_tcp && is_ours(fd)) return 0;  // how TCP would carry it: nothing to set
  return static_cast<int>(done);
}

OURS int getsockopt(int fd, int level, int name, void* value, socklen_t* bytes) {
  const bool of_tcp = level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6;
  const bool asks_kind = level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL);
  if ((!of_tcp && !asks_kind) || value == nullptr || bytes == nullptr || !is_ours(fd)) {
    return static_cast<int>(plain(SYS_getsockopt, fd, level, name, word(value), word(bytes)));
  }
  std::memset(value, 0, *bytes);
  int answer = 0;
  if (asks_kind) {
    sockaddr_storage address;
    socklen_t address_bytes = 0;
    (void)address_of(SYS_getsockname, fd, address, address_bytes);
    answer = name == SO_PROTOCOL ? static_cast<int>(IPPROTO_TCP) : address.ss_family;
  } else if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
    answer = 65483;  // of TCP over loopback
  } else if (level == IPPROTO_TCP && name == TCP_NODELAY) {
    answer = 1;
  } else if (level == IPPROTO_TCP && name == TCP_CONGESTION) {
    std::snprintf(static_cast<char*>(value), *bytes, "broker");
    return 0;
  } else {
    return 0;
  }
  if (*bytes >= sizeof answer) std::memcpy(value, &answer, sizeof answer);
  *bytes = std::min<socklen_t>(*bytes, sizeof answer);
  return 0;
}

}  // extern "C"
