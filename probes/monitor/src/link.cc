#include "link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "greynic/daemon/hang_up.h"

namespace greynic::monitor {
namespace {

/// Room for one file beside a message; more are a sign of another protocol.
union Beside {
  cmsghdr head;
  char room[CMSG_SPACE(4 * sizeof(int))];
};

}  // namespace

zero_link_message make_message(zero_link_kind kind, std::string_view text) {
  zero_link_message message{};
  std::memcpy(message.magic, ZERO_LINK_MAGIC, sizeof message.magic);
  message.kind = kind;
  std::copy_n(text.begin(), std::min(text.size(), sizeof message.text - 1), message.text);
  return message;
}

bool send_message(int socket, const zero_link_message& message, int file) {
  iovec bytes{const_cast<zero_link_message*>(&message), sizeof message};
  Beside beside{};
  msghdr whole{};
  whole.msg_iov = &bytes;
  whole.msg_iovlen = 1;
  if (file >= 0) {
    whole.msg_control = beside.room;
    whole.msg_controllen = CMSG_SPACE(sizeof file);
    cmsghdr* const files = CMSG_FIRSTHDR(&whole);
    files->cmsg_level = SOL_SOCKET;
    files->cmsg_type = SCM_RIGHTS;
    files->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(files), &file, sizeof file);
  }
  return ::sendmsg(socket, &whole, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof message;
}

std::optional<Received> receive_message(int socket, bool& gone) {
  Received received;
  iovec bytes{&received.message, sizeof received.message};
  Beside beside{};
  msghdr whole{};
  whole.msg_iov = &bytes;
  whole.msg_iovlen = 1;
  whole.msg_control = beside.room;
  whole.msg_controllen = sizeof beside.room;
  const ssize_t got = ::recvmsg(socket, &whole, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  int files = 0;
  for (cmsghdr* head = CMSG_FIRSTHDR(&whole); got >= 0 && head; head = CMSG_NXTHDR(&whole, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
      int file = -1;
      std::memcpy(&file, reinterpret_cast<char*>(head) + at, sizeof file);
      if (++files == 1) {
        received.file = file;
      } else {
        daemon::close_apart(file);
      }
    }
  }
  received.message.text[sizeof received.message.text - 1] = 0;
  const bool is_whole = got == sizeof received.message && (whole.msg_flags & MSG_TRUNC) == 0;
  if (is_whole && files <= 1 && std::memcmp(received.message.magic, ZERO_LINK_MAGIC, 8) == 0) {
    return received;
  }
  daemon::close_apart(received.file);
  gone = true;
  return std::nullopt;
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket >= 0 &&
      ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    ::close(socket);
    errno = error;
    return -1;
  }
  return socket;
}

}  // namespace greynic::monitor
