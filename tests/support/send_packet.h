#pragma once

/// Packets of any length with any number of descriptors, as hostile programs send them.

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <vector>

inline bool send_packet(int socket, const void* bytes, std::size_t length,
                        const std::vector<int>& descriptors) {
  iovec part{const_cast<void*>(bytes), length};
  std::vector<std::max_align_t> control(
      CMSG_SPACE(descriptors.size() * sizeof(int)) / sizeof(std::max_align_t) + 1);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(length);
}
