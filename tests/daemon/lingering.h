#pragma once

/// What a hostile program hands to a daemon beside a packet.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "send_packet.h"

namespace greynic::daemon {

/// A TCP socket that whoever closes it last waits for, ten minutes long: its peer reads nothing.
class Lingering {
 public:
  Lingering() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    auto* const name = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(bind(listener, name, bytes), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, name, &bytes), 0);
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(socket_, name, bytes), 0);
    peer_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
    const std::array<char, 65536> data{};
    while (send(socket_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    const linger long_time{1, 600};
    EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
  }
  /// The peer goes, and whoever waits goes on.
  ~Lingering() { ::close(peer_); }
  Lingering(const Lingering&) = delete;
  Lingering& operator=(const Lingering&) = delete;

  /// The one descriptor of it, which is the caller's.
  [[nodiscard]] int socket() const { return socket_; }

  /// Sends it with a packet of one byte, after which this process has it no more.
  void send_over(int link) {
    EXPECT_TRUE(send_packet(link, "x", 1, {socket_}));
    ::close(socket_);
  }

 private:
  int socket_ = -1;
  int peer_ = -1;
};

}  // namespace greynic::daemon
