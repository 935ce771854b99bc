// How much a program moves over its broker, by one thread, in place and over many connections, to a
// program that throws it away: what `rstream` is for rsockets and `ib_send_bw` for plain verbs. Counted is what lies
// at the other broker for good. Nothing is asserted.
//
// usage: broker_stream_bench sink SOCKET PORT [RING_KIB]
//        broker_stream_bench stream SOCKET HOST PORT CONNECTIONS SECONDS [RING_KIB]

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "greynic_broker.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPieceBytes = 65536;

[[noreturn]] void complain(const char* what) {
  fmt::print(stderr, "{}: {} {}\n", what, std::strerror(errno), greynic_broker_reason());
  std::exit(1);
}

greynic_broker* attach(const char* socket, std::size_t connections, std::size_t ring_bytes) {
  greynic_broker_options options{};
  options.ring_bytes = ring_bytes;
  options.segment_bytes = (connections + 1) * 2 * options.ring_bytes;
  greynic_broker* broker = greynic_broker_open(socket, &options);
  if (broker == nullptr) complain("open");
  return broker;
}

void wait(greynic_broker* broker, int most_ms) {
  pollfd entry{greynic_broker_fd(broker), POLLIN, 0};
  (void)poll(&entry, 1, most_ms);
}

int sink(const char* socket, std::uint16_t port, std::size_t ring_bytes) {
  greynic_broker* broker = attach(socket, 256, ring_bytes);
  greynic_broker_listener* listener = greynic_broker_listen(broker, port, 0);
  if (listener == nullptr) complain("listen");
  fmt::print("listening\n");
  std::fflush(stdout);
  std::array<greynic_broker_readiness, 64> ready;
  for (int count = 0; (count = greynic_broker_ready(broker, ready.data(), 64)) >= 0;) {
    if (count == 0) wait(broker, -1);
    for (int i = 0; i < count; ++i) {
      greynic_broker_connection* c = ready[static_cast<std::size_t>(i)].connection;
      if (c == nullptr) {
        while (greynic_broker_accept(listener, GREYNIC_BROKER_NONBLOCK) != nullptr) {
        }
        continue;
      }
      const void* data = nullptr;
      ssize_t got = 0;
      do {
        got = greynic_broker_recv_zero_copy(c, &data, 1 << 20, GREYNIC_BROKER_NONBLOCK);
      } while (got > 0);
      if (got == 0 || errno != EAGAIN) greynic_broker_disconnect(c);
    }
  }
  return 3;
}

int stream(const char* socket, const char* host, std::uint16_t port, std::size_t count, int seconds,
           std::size_t ring_bytes) {
  greynic_broker* broker = attach(socket, count, ring_bytes);
  std::vector<greynic_broker_connection*> connections;
  for (std::size_t i = 0; i < count; ++i) {
    greynic_broker_connection* c = greynic_broker_connect(broker, host, port, 0);
    if (c == nullptr) complain("connect");
    connections.push_back(c);
  }
  // What the ring holds is sent again and again, as perftest does with its buffer.
  const auto fill = [](greynic_broker_connection* c) {
    void* place = nullptr;
    for (ssize_t room = 0; (room = greynic_broker_room(c, &place)) > 0;) {
      (void)greynic_broker_filled(
          c, std::min<std::size_t>(kPieceBytes, static_cast<std::size_t>(room)));
    }
  };
  const auto begin = Clock::now();
  for (greynic_broker_connection* c : connections) fill(c);
  std::array<greynic_broker_readiness, 64> ready;
  while (Clock::now() < begin + std::chrono::seconds(seconds)) {
    const int there = greynic_broker_ready(broker, ready.data(), 64);
    if (there < 0) complain("ready");
    for (int i = 0; i < there; ++i) fill(ready[static_cast<std::size_t>(i)].connection);
    if (there == 0) wait(broker, 100);
  }
  std::uint64_t sent = 0;
  for (greynic_broker_connection* c : connections) sent += greynic_broker_sent(c);
  const std::chrono::duration<double> passed = Clock::now() - begin;
  fmt::print("{} connections: {:.1f} Mbit/s\n", count,
             static_cast<double>(sent) * 8e-6 / passed.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto port = [&](int at) { return static_cast<std::uint16_t>(std::atoi(argv[at])); };
  const auto ring_at = [&](int at) {
    return argc > at ? static_cast<std::size_t>(std::atoi(argv[at])) << 10 : 2 * kPieceBytes;
  };
  if (mode == "sink" && (argc == 4 || argc == 5)) return sink(argv[2], port(3), ring_at(4));
  if (mode == "stream" && (argc == 7 || argc == 8)) {
    return stream(argv[2], argv[3], port(4), static_cast<std::size_t>(std::atoi(argv[5])),
                  std::atoi(argv[6]), ring_at(7));
  }
  fmt::print(stderr,
             "usage: broker_stream_bench sink SOCKET PORT [RING_KIB] | stream SOCKET HOST PORT "
             "CONNECTIONS SECONDS [RING_KIB]\n");
  return 2;
}
