// Applications of a broker, for the tests of the whole: one that echoes, one that loads it with
// streams whose every byte it knows, and hostile ones (hostile.cc).
//
// usage: broker_program echo SOCKET PORT
//        broker_program load SOCKET HOST PORT CONNECTIONS BYTES SEED [send|write|read]
//        broker_program hostile SOCKET KIND
//        broker_program wrapped SOCKET HOST PORT WORDS [again]
//        broker_program huge SOCKET
//        broker_program lend SOCKET HOST PORT ROUNDS BYTES [again]
//        broker_program lend_much SOCKET
//        broker_program relay_lies

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "greynic_broker.h"

int hostile(const char* socket, const std::string& kind);
int wrapped(const char* socket, const char* host, std::uint16_t port, const std::string& words,
            bool reconnects);
int lend(const char* socket, const char* host, std::uint16_t port, int rounds, std::size_t bytes,
         bool reconnects);
int lend_much(const char* socket);
int relay_lies();

namespace {

unsigned char byte_at(std::uint64_t key, std::uint64_t place) {
  std::uint64_t x = (key + place / 8) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29;
  return static_cast<unsigned char>(x * 0xBF58476D1CE4E5B9ULL >> (56 - place % 8));
}

greynic_broker* attach(const char* socket) {
  greynic_broker_options options{};
  options.ring_bytes = 64 << 10;
  greynic_broker* broker = greynic_broker_open(socket, &options);
  if (broker == nullptr)
    std::fprintf(stderr, "%s: %s\n", std::strerror(errno), greynic_broker_reason());
  return broker;
}

/// Waits until something may be ready and asks what is; -1 when the broker has died.
int wait_ready(greynic_broker* broker, greynic_broker_readiness* ready, int most) {
  for (;;) {
    const int count = greynic_broker_ready(broker, ready, most);
    if (count != 0) return count;
    pollfd entry{greynic_broker_fd(broker), POLLIN, 0};
    if (poll(&entry, 1, 60000) == 0) {
      std::fprintf(stderr, "nothing came for a minute\n");
      std::exit(4);
    }
  }
}

/// What was received and is not sent back yet.
struct Rest {
  const char* data = nullptr;
  std::size_t bytes = 0;
};

/// False when the connection is over.
bool echo_on(greynic_broker_connection* c, Rest& rest) {
  for (;;) {
    while (rest.bytes > 0) {
      const ssize_t put = greynic_broker_send(c, rest.data, rest.bytes, GREYNIC_BROKER_NONBLOCK);
      if (put < 0) return errno == EAGAIN;
      rest.data += put;
      rest.bytes -= static_cast<std::size_t>(put);
    }
    const void* data = nullptr;
    const ssize_t got = greynic_broker_recv_zero_copy(c, &data, 1 << 16, GREYNIC_BROKER_NONBLOCK);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    rest = {static_cast<const char*>(data), static_cast<std::size_t>(got)};
  }
}

int echo(const char* socket, std::uint16_t port) {
  greynic_broker* broker = attach(socket);
  if (broker == nullptr) return 1;
  greynic_broker_listener* listener = greynic_broker_listen(broker, port, 0);
  if (listener == nullptr) return 1;
  std::printf("listening\n");
  std::fflush(stdout);
  std::map<greynic_broker_connection*, Rest> rests;
  std::array<greynic_broker_readiness, 64> ready;
  for (;;) {
    const int count = wait_ready(broker, ready.data(), ready.size());
    if (count < 0) return 3;
    for (int i = 0; i < count; ++i) {
      const greynic_broker_readiness& one = ready[static_cast<std::size_t>(i)];
      if (one.listener != nullptr) {
        while (auto* c = greynic_broker_accept(listener, GREYNIC_BROKER_NONBLOCK)) rests[c] = {};
        continue;
      }
      const auto found = rests.find(one.connection);
      if (found == rests.end() || echo_on(found->first, found->second)) continue;
      greynic_broker_disconnect(found->first);
      rests.erase(found);
    }
  }
}

struct Stream {
  std::uint64_t key = 0, sent = 0, received = 0;
  bool finished = false;
};

struct Tally {
  std::uint64_t whole = 0, reset = 0, other = 0, wrong = 0, bytes = 0;
};

enum class Step { kWait, kDone, kFailed };

Step drive(greynic_broker_connection* c, Stream& s, std::uint64_t bytes, Tally& tally) {
  std::array<unsigned char, 20000> part;
  while (s.sent < bytes) {
    const std::size_t most = 1 + byte_at(s.key ^ 77, s.sent) * std::size_t{78};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, bytes - s.sent));
    for (std::size_t i = 0; i < count; ++i) part[i] = byte_at(s.key, s.sent + i);
    const ssize_t put = greynic_broker_send(c, part.data(), count, GREYNIC_BROKER_NONBLOCK);
    if (put < 0 && errno != EAGAIN) return Step::kFailed;
    if (put < 0) break;
    s.sent += static_cast<std::uint64_t>(put);
  }
  if (s.sent == bytes && !s.finished) {
    s.finished = true;
    if (greynic_broker_finish(c) != 0) return Step::kFailed;
  }
  for (;;) {
    const ssize_t got = greynic_broker_recv(c, part.data(), part.size(), GREYNIC_BROKER_NONBLOCK);
    if (got < 0) return errno == EAGAIN ? Step::kWait : Step::kFailed;
    if (got == 0) return s.received == bytes ? Step::kDone : Step::kFailed;
    for (ssize_t i = 0; i < got; ++i) {
      tally.wrong += part[static_cast<std::size_t>(i)] != byte_at(s.key, s.received++);
    }
    tally.bytes += static_cast<std::uint64_t>(got);
  }
}

int load(char** words, int verb) {
  const auto count = std::strtoull(words[3], nullptr, 10);
  const auto bytes = std::strtoull(words[4], nullptr, 10);
  const auto seed = std::strtoull(words[5], nullptr, 10);
  const auto port = static_cast<std::uint16_t>(std::atoi(words[2]));
  greynic_broker* broker = attach(words[0]);
  if (broker == nullptr) return 1;
  Tally tally;
  std::map<greynic_broker_connection*, Stream> streams;
  const auto judge = [&](Step step) {
    if (step == Step::kDone) ++tally.whole;
    if (step == Step::kFailed) ++(errno == ECONNRESET ? tally.reset : tally.other);
    if (step == Step::kFailed && errno != ECONNRESET)
      std::fprintf(stderr, "%s\n", std::strerror(errno));
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    auto* c = greynic_broker_connect(broker, words[1], port, verb | GREYNIC_BROKER_NONBLOCK);
    if (c == nullptr) {
      judge(Step::kFailed);
      continue;
    }
    streams[c].key = seed << 20 | i;
  }
  std::array<greynic_broker_readiness, 64> ready;
  while (!streams.empty()) {
    const int there = wait_ready(broker, ready.data(), ready.size());
    std::set<greynic_broker_connection*> now;
    if (there < 0) {
      for (const auto& [c, stream] : streams) now.insert(c);
    }
    for (int i = 0; i < there; ++i) now.insert(ready[static_cast<std::size_t>(i)].connection);
    for (greynic_broker_connection* c : now) {
      const auto found = streams.find(c);
      if (found == streams.end()) continue;
      const Step step = drive(c, found->second, bytes, tally);
      if (step == Step::kWait) continue;
      judge(step);
      greynic_broker_disconnect(c);
      streams.erase(found);
    }
  }
  greynic_broker_close(broker);
  std::printf(
      "whole %llu reset %llu other %llu wrong %llu bytes %llu\n",
      static_cast<unsigned long long>(tally.whole), static_cast<unsigned long long>(tally.reset),
      static_cast<unsigned long long>(tally.other), static_cast<unsigned long long>(tally.wrong),
      static_cast<unsigned long long>(tally.bytes));
  return tally.wrong == 0 ? 0 : 5;
}

/// A segment on huge pages, as far as there are any, and why not the rest.
int huge(const char* socket) {
  greynic_broker_options options{};
  options.segment_bytes = 8U << 20;
  options.huge_pages = 1;
  greynic_broker* broker = greynic_broker_open(socket, &options);
  if (broker == nullptr) return 1;
  const std::size_t bytes = greynic_broker_huge_bytes(broker);
  std::printf("%zu bytes on huge pages; %s\n", bytes, greynic_broker_reason());
  const bool told = bytes >= 6U << 20 || *greynic_broker_reason() != '\0';
  greynic_broker_close(broker);
  return told ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (mode == "echo" && count == 4) {
    return echo(words[2], static_cast<std::uint16_t>(std::atoi(words[3])));
  }
  const std::string verb = count > 8 ? words[8] : "";
  if (mode == "load" && count >= 8) {
    return load(words + 2, verb == "send"    ? GREYNIC_BROKER_SEND
                           : verb == "write" ? GREYNIC_BROKER_WRITE
                           : verb == "read"  ? GREYNIC_BROKER_READ
                                             : 0);
  }
  if (mode == "huge" && count == 3) return huge(words[2]);
  if (mode == "lend" && count >= 7) {
    return lend(words[2], words[3], static_cast<std::uint16_t>(std::atoi(words[4])),
                std::atoi(words[5]), std::strtoull(words[6], nullptr, 10), count > 7);
  }
  if (mode == "lend_much" && count == 3) return lend_much(words[2]);
  if (mode == "relay_lies" && count == 2) return relay_lies();
  if (mode == "hostile" && count == 4) return hostile(words[2], words[3]);
  if (mode == "wrapped" && count >= 6) {
    return wrapped(words[2], words[3], static_cast<std::uint16_t>(std::atoi(words[4])), words[5],
                   count > 6);
  }
  std::fprintf(stderr, "usage: see broker_program.cc\n");
  return 2;
}
