// Applications that lend memory to their broker and send from it. What comes back from an echo is held
// against what was sent, byte by byte.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "greynic_broker.h"

namespace {

unsigned char byte_of(std::uint64_t round, std::size_t place) {
  return static_cast<unsigned char>((place + round * 7919) * 0x9E3779B97F4A7C15ULL >> 56);
}

/// Sends memory as often as said, written anew each time: half of it, and all of it. Another thread
/// takes what comes back. How many bytes were wrong, or -1 with errno.
long exchange(greynic_broker* broker, const char* host, std::uint16_t port, unsigned char* memory,
              std::size_t bytes, int rounds) {
  greynic_broker_connection* c = greynic_broker_connect(broker, host, port, 0);
  if (c == nullptr) return -1;
  const auto length = [&](int round) { return round % 2 == 0 ? bytes : bytes / 2; };
  long wrong = 0;
  int error = 0;
  std::thread reader([&] {
    std::vector<unsigned char> part(100000);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t got = 0; got < length(round);) {
        const ssize_t more =
            greynic_broker_recv(c, part.data(), std::min(part.size(), length(round) - got), 0);
        if (more <= 0) {
          error = more == 0 ? EPIPE : errno;
          return;
        }
        for (ssize_t i = 0; i < more; ++i) {
          wrong += part[static_cast<std::size_t>(i)] !=
                   byte_of(static_cast<std::uint64_t>(round), got++);
        }
      }
    }
  });
  for (int round = 0; round < rounds; ++round) {
    // The last send has returned, so these bytes are the program's again.
    for (std::size_t i = 0; i < length(round); ++i) {
      memory[i] = byte_of(static_cast<std::uint64_t>(round), i);
    }
    if (greynic_broker_send(c, memory, length(round), 0) < 0) break;
  }
  reader.join();
  greynic_broker_disconnect(c);
  errno = error;
  return error != 0 ? -1 : wrong;
}

}  // namespace

int lend(const char* socket, const char* host, std::uint16_t port, int rounds, std::size_t bytes,
         bool reconnects) {
  greynic_broker_options options{};
  options.ring_bytes = 64 << 10;
  options.reconnect = reconnects ? 1 : 0;
  greynic_broker* broker = greynic_broker_open(socket, &options);
  if (broker == nullptr) return 1;
  auto* memory = static_cast<unsigned char*>(greynic_broker_lend(broker, bytes));
  if (memory == nullptr) return 1;
  for (int half = 0; half < (reconnects ? 2 : 1); ++half) {
    const long wrong = exchange(broker, host, port, memory, bytes, rounds);
    std::printf("wrong %ld%s%s\n", wrong, wrong < 0 ? ": " : "",
                wrong < 0 ? std::strerror(errno) : "");
    std::fflush(stdout);
    if (wrong != 0) return 5;
    if (!reconnects || half == 1) continue;
    // Until the broker has died; the next one is handed the same memory.
    greynic_broker_readiness ready;
    while (greynic_broker_ready(broker, &ready, 1) >= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  if (greynic_broker_take_back(broker, memory) != 0) return 6;
  if (greynic_broker_take_back(broker, memory) != -1 || errno != EINVAL) return 7;
  std::printf("taken back\n");
  std::fflush(stdout);
  pause();  // until it is killed: its broker still knows it
  return 0;
}

/// As much as may be lent at a time, and more.
int lend_much(const char* socket) {
  greynic_broker* broker = greynic_broker_open(socket, nullptr);
  if (broker == nullptr) return 1;
  std::vector<void*> lent;
  while (void* one = greynic_broker_lend(broker, 5000)) lent.push_back(one);
  std::printf("%zu: %s\n", lent.size(), std::strerror(errno));
  if (greynic_broker_take_back(broker, lent.back()) != 0) return 1;
  void* again = greynic_broker_lend(broker, 5000);
  std::printf("%s\n", again != nullptr ? "again" : std::strerror(errno));
  if (greynic_broker_lend(broker, std::size_t{1} << 40) == nullptr) {
    std::printf("%s\n", std::strerror(errno));
  }
  greynic_broker_close(broker);
  return 0;
}
