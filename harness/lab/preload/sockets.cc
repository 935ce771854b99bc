// Two calls of plain sockets: a pair's client starts when its server listens, and servers of
// different pairs may listen on the same port.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preload/nic.h"

namespace greynic::lab {

void tell_listening() {
  const char* const name = std::getenv(kSocketVariable);
  const char* const host = std::getenv(kHostVariable);
  if (!name || !host) return;
  const int error = errno;
  const int fd = connect_to(name);
  if (fd >= 0) {
    Message message{.kind = MessageKind::kListens};
    message.host = static_cast<std::uint32_t>(std::strtoul(host, nullptr, 10));
    send_message(fd, message);
    close(fd);
  }
  errno = error;
}

}  // namespace greynic::lab

extern "C" {

__attribute__((visibility("default"))) int listen(int fd, int backlog) {
  const auto result = static_cast<int>(syscall(SYS_listen, fd, backlog));
  if (result != 0) return result;
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 &&
      (own.ss_family == AF_INET || own.ss_family == AF_INET6)) {
    greynic::lab::tell_listening();
  }
  return result;
}

__attribute__((visibility("default"))) int bind(int fd, const sockaddr* address, socklen_t bytes) {
  const char* const text = std::getenv(greynic::lab::kOwnAddressVariable);
  in_addr own{};
  if (text && address && inet_pton(AF_INET, text, &own) == 1) {
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    if (address->sa_family == AF_INET && bytes >= sizeof v4) {
      std::memcpy(&v4, address, sizeof v4);
      if (v4.sin_addr.s_addr == htonl(INADDR_ANY) && v4.sin_port != 0) {
        v4.sin_addr = own;
        return static_cast<int>(syscall(SYS_bind, fd, &v4, sizeof v4));
      }
    }
    if (address->sa_family == AF_INET6 && bytes >= sizeof v6) {
      std::memcpy(&v6, address, sizeof v6);
      if (IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) && v6.sin6_port != 0) {
        v6.sin6_addr = {};
        v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xFF;
        std::memcpy(v6.sin6_addr.s6_addr + 12, &own, sizeof own);
        if (syscall(SYS_bind, fd, &v6, sizeof v6) == 0) return 0;
      }
    }
  }
  return static_cast<int>(syscall(SYS_bind, fd, address, bytes));
}

}  // extern "C"
