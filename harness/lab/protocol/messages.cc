#include "protocol/messages.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace greynic::lab {
namespace {

int with_address(const std::string& name, int (*act)(int, const sockaddr*, socklen_t)) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);  // a leading 0: the abstract namespace
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  if (act(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

std::string address_text(std::uint32_t network, std::uint32_t host) {
  const std::uint32_t address = address_of(network, host);
  return std::to_string(address >> 24) + "." + std::to_string(address >> 16 & 255) + "." +
         std::to_string(address >> 8 & 255) + "." + std::to_string(address & 255);
}

Descriptors::~Descriptors() {
  for (const int fd : fds) {
    if (fd >= 0) close(fd);
  }
}

int Descriptors::take(std::size_t i) { return std::exchange(fds[i], -1); }

bool send_message(int socket, const Message& message, int first, int second) {
  std::array<int, 2> fds{};
  std::size_t count = 0;
  for (const int fd : {first, second}) {
    if (fd >= 0) fds[count++] = fd;
  }
  iovec part{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (count > 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), count * sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof message);
}

bool receive_message(int socket, Message& message, Descriptors& descriptors) {
  iovec part{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  // Also of a message that is none: its descriptors are ours to close.
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&header); part_of; part_of = CMSG_NXTHDR(&header, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t bytes = part_of->cmsg_len - CMSG_LEN(0);
    std::memcpy(descriptors.fds.data(), CMSG_DATA(part_of),
                std::min(bytes, sizeof descriptors.fds));
  }
  return got == static_cast<ssize_t>(sizeof message) && (header.msg_flags & MSG_TRUNC) == 0;
}

int listen_at(const std::string& name) {
  const int fd = with_address(name, bind);
  if (fd >= 0) listen(fd, 64);
  return fd;
}

int connect_to(const std::string& name) {
  const int fd = with_address(name, connect);
  ucred who{};
  socklen_t bytes = sizeof who;
  // Any user may take a name of the abstract namespace first.
  if (fd < 0 || (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
                 (who.uid == geteuid() || who.uid == 0))) {
    return fd;
  }
  close(fd);
  errno = EPERM;
  return -1;
}

}  // namespace greynic::lab
