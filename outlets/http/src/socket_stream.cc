#include "socket_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace greynic::http {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};

bool ready(int socket, short what, std::chrono::milliseconds patience) {
  pollfd asked{.fd = socket, .events = what, .revents = 0};
  return poll(&asked, 1, static_cast<int>(patience.count())) > 0;
}

}  // namespace

SocketStream::~SocketStream() {
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
}

bool SocketStream::wait(std::chrono::milliseconds patience) const {
  return at_ < end_ || ready(socket_, POLLIN, patience);
}

bool SocketStream::is_readable() const { return wait(kPatience); }
bool SocketStream::is_writable() const { return ready(socket_, POLLOUT, kPatience); }

ssize_t SocketStream::read(char* into, size_t size) {
  if (allowed_ == 0) return -1;
  if (at_ == end_) {
    if (!is_readable()) return -1;
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return got;
    at_ = 0;
    end_ = static_cast<std::size_t>(got);
  }
  const std::size_t count = std::min({size, end_ - at_, allowed_});
  std::memcpy(into, buffer_.data() + at_, count);
  at_ += count;
  allowed_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t SocketStream::write(const char* from, size_t size) {
  if (!is_writable()) return -1;
  return send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Logs are the door's.
void SocketStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}
void SocketStream::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

}  // namespace greynic::http
