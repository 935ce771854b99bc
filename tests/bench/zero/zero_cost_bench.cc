// What reading metrics costs, on both sides: arenas by mapping and by process_vm_readv, beside RPC
// over a unix socket and TCP, and Prometheus-like text over TCP. The watched side is a process of
// its own that updates nothing while it is read; its CPU time is that of its own clock. Then what
// registering costs, and how often a value is torn. Nothing is asserted.
//
// usage: zero_cost_bench [reads, 1000000] [reads of the integrity part, 0]
//        zero_cost_bench sweep [seconds of a point, 1]
// sweep: a JSON line for each way, number of metrics and interval between two reads (sweep.py)

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "greynic/zero/reader.h"
#include "greynic_zero.h"

namespace {

using namespace greynic;

constexpr std::size_t kMetrics = 512;
constexpr std::size_t kMostMetrics = 4096;
struct Stats {
  std::uint64_t words[kMetrics];
};
const zero_field kFields[] = {{"words", ZERO_U64, ZERO_COUNTER, 0, kMetrics, 0, "", "", ""}};
const zero_schema kWhole = {"whole", "", kFields, 1, sizeof(Stats), ZERO_WHOLE};

/// How often and what is read.
struct Load {
  std::size_t metrics = kMetrics;
  int reads = 0;
  double interval_ns = 0;  ///< between two reads; 0: one right after the other
};

double now_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Cost {
  double p50_ns = 0, p99_ns = 0, watched_ns = 0, reader_ns = 0;
};

constexpr std::chrono::milliseconds kStill{20};

/// Reads so often; latencies by the wall clock, CPU by the clocks of both processes.
template <typename Read>
Cost measure(pid_t watched, const Load& load, const Read& read) {
  clockid_t clock{};
  clock_getcpuclockid(watched, &clock);
  const int reads = load.reads;
  for (int i = 0; i < 100; ++i) read();
  // It may still be on its way to where it waits, which is nothing that reading costs.
  for (double last = -1; last != now_of(clock); std::this_thread::sleep_for(kStill)) {
    last = now_of(clock);
  }
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(reads));
  const double before = now_of(clock), own = now_of(CLOCK_PROCESS_CPUTIME_ID);
  double next = now_of(CLOCK_MONOTONIC);
  for (int i = 0; i < reads; ++i) {
    if (load.interval_ns > 0) {
      next += load.interval_ns;
      const double left = std::max(0.0, next - now_of(CLOCK_MONOTONIC));
      std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(left)));
    }
    const double begin = now_of(CLOCK_MONOTONIC);
    read();
    times.push_back(now_of(CLOCK_MONOTONIC) - begin);
  }
  Cost cost;
  cost.watched_ns = (now_of(clock) - before) / reads;
  cost.reader_ns = (now_of(CLOCK_PROCESS_CPUTIME_ID) - own) / reads;
  std::sort(times.begin(), times.end());
  cost.p50_ns = times[times.size() / 2];
  cost.p99_ns = times[times.size() * 99 / 100];
  return cost;
}

void tell(const char* name, const Load& load, const Cost& cost) {
  if (load.interval_ns > 0) {
    fmt::print(R"({{"way":"{}","metrics":{},"interval_ns":{:.0f},"p50_ns":{:.0f},"p99_ns":{:.0f},)"
               R"("watched_cpu_ns":{:.1f},"reader_cpu_ns":{:.1f}}})"
               "\n",
               name, load.metrics, load.interval_ns, cost.p50_ns, cost.p99_ns, cost.watched_ns,
               cost.reader_ns);
    std::fflush(stdout);
    return;
  }
  fmt::print("{:<36} {:>9} {:>10.0f} {:>10.0f} {:>14.3f} {:>14.1f}\n", name, load.reads,
             cost.p50_ns, cost.p99_ns, cost.watched_ns, cost.reader_ns);
  std::fflush(stdout);
}

void read_all(int socket, char* into, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = read(socket, into + done, bytes - done);
    if (got <= 0) _exit(0);
    done += static_cast<std::size_t>(got);
  }
}
void write_all(int socket, const char* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = write(socket, from + done, bytes - done);
    if (got <= 0) _exit(0);
    done += static_cast<std::size_t>(got);
  }
}

std::string as_text(std::span<const std::uint64_t> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += fmt::format("stats_words_total{{index=\"{}\"}} {}\n", i, words[i]);
  }
  return text + "# EOF\n";
}

/// The watched side of RPC: for each byte that comes, all values, or their text behind its length.
[[noreturn]] void serve(int socket, bool text, std::size_t metrics) {
  static std::uint64_t memory[kMostMetrics];
  const std::span words(memory, metrics);
  for (char ask = 0;;) {
    read_all(socket, &ask, 1);
    words[7] += 1;
    if (text) {
      const std::string body = as_text(words);
      const std::uint64_t bytes = body.size();
      // In one write: a second small one would wait for the acknowledgement of the first.
      std::string answer(reinterpret_cast<const char*>(&bytes), sizeof bytes);
      answer += body;
      write_all(socket, answer.data(), answer.size());
    } else {
      write_all(socket, reinterpret_cast<const char*>(words.data()), words.size_bytes());
    }
  }
}

std::array<int, 2> connected(bool tcp) {
  std::array<int, 2> ends{};
  if (!tcp) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
    return ends;
  }
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address);
  listen(listening, 1);
  socklen_t bytes = sizeof address;
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &bytes);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  connect(ends[0], reinterpret_cast<sockaddr*>(&address), sizeof address);
  ends[1] = accept(listening, nullptr, nullptr);
  close(listening);
  return ends;
}

void rpc(const char* name, bool tcp, bool text, const Load& load) {
  const auto ends = connected(tcp);
  const pid_t watched = fork();
  if (watched == 0) serve(ends[1], text, load.metrics);
  close(ends[1]);
  std::vector<char> answer(1 << 20);
  tell(name, load, measure(watched, load, [&] {
         write_all(ends[0], "?", 1);
         std::uint64_t bytes = load.metrics * 8;
         if (text) read_all(ends[0], reinterpret_cast<char*>(&bytes), sizeof bytes);
         read_all(ends[0], answer.data(), bytes);
       }));
  kill(watched, SIGKILL);
  waitpid(watched, nullptr, 0);
  close(ends[0]);
}

void one_sided(const Load& load) {
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) return;
  const zero_arena_options options = {ZERO_PERSISTENT, 256 << 10, 8, 0, "watched"};
  zero_arena* const arena = zero_arena_create(&options);
  const pid_t watched = fork();
  if (watched == 0) {
    const auto count = static_cast<std::uint32_t>(load.metrics);
    const zero_field field = {"words", ZERO_U64, ZERO_COUNTER, 0, count, 0, "", "", ""};
    const zero_schema schema = {"stats", "", &field, 1, count * 8, ZERO_PLAIN};
    auto* const words = static_cast<std::uint64_t*>(zero_arena_malloc(arena, count * 8));
    zero_arena_publish(arena, words, &schema, "");
    for (std::uint32_t i = 0; i < count; ++i) words[i] = i;
    write_all(ready[1], "!", 1);
    for (;;) pause();
  }
  char byte = 0;
  read_all(ready[0], &byte, 1);
  auto mapped = *zero::ArenaReader::open(zero::memory_source(
      {static_cast<const std::byte*>(zero_arena_memory(arena)), zero_arena_bytes(arena)}));
  const auto arenas = zero::find_arenas(watched);
  auto remote = *zero::ArenaReader::open(zero::process_source(watched, arenas->front()));
  std::uint64_t failed = 0;
  tell("shared mapping", load, measure(watched, load, [&] { failed += mapped.look() ? 0 : 1; }));
  tell("process_vm_readv", load, measure(watched, load, [&] { failed += remote.look() ? 0 : 1; }));
  if (failed > 0) fmt::print(stderr, "{} looks failed\n", failed);
  kill(watched, SIGKILL);
  waitpid(watched, nullptr, 0);
  zero_arena_destroy(arena);
}

void registering() {
  const zero_field field = {"bytes", ZERO_U64, ZERO_COUNTER, 0, 1, 0, "", "", ""};
  const zero_schema schema = {"call", "", &field, 1, 8, ZERO_PLAIN};
  const zero_arena_options options = {ZERO_TIDAL, 32 << 20, 60000, 1, "calls"};
  zero_arena* const arena = zero_arena_create(&options);
  std::vector<double> times;
  for (int i = 0; i < 200000; ++i) {
    const double begin = now_of(CLOCK_MONOTONIC);
    void* const memory = zero_arena_malloc(arena, 8);
    zero_arena_publish(arena, memory, &schema, "id=\"12345\"");
    zero_arena_free(arena, memory);
    times.push_back(now_of(CLOCK_MONOTONIC) - begin);
  }
  std::sort(times.begin(), times.end());
  fmt::print("register + deregister: p50 {:.0f} ns, p99 {:.0f} ns\n", times[times.size() / 2],
             times[times.size() * 99 / 100]);
  zero_arena_destroy(arena);
}

/// A writer replaces a whole structure of 512 equal words; every copy must be of one write.
void integrity(std::uint64_t values) {
  const zero_arena_options options = {ZERO_PERSISTENT, 256 << 10, 8, 0, "written"};
  zero_arena* const arena = zero_arena_create(&options);
  void* const memory = zero_arena_malloc(arena, zero_whole_size(sizeof(Stats)));
  zero_arena_publish(arena, memory, &kWhole, "");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    Stats stats;
    for (std::uint64_t n = 1; !stop; ++n) {
      std::fill(std::begin(stats.words), std::end(stats.words), n);
      zero_write(memory, &stats, sizeof stats);
      for (int i = 0; i < 300; ++i) __asm__ volatile("");
    }
  });
  auto reader = *zero::ArenaReader::open(zero::memory_source(
      {static_cast<const std::byte*>(zero_arena_memory(arena)), zero_arena_bytes(arena)}));
  std::uint64_t read = 0, mixed = 0, moved = 0, last = 0;
  while (read < values) {
    const auto readings = reader.look();
    for (const auto& reading : *readings) {
      Stats stats;
      std::memcpy(&stats, reading.bytes.data(), sizeof stats);
      for (const std::uint64_t word : stats.words) mixed += word != stats.words[0] ? 1 : 0;
      moved += stats.words[0] != last ? 1 : 0;
      last = stats.words[0];
      read += kMetrics;
    }
  }
  stop = true;
  writer.join();
  fmt::print(
      "integrity: {} values read under a writer, {} of another write, {} writes seen, {} copies "
      "made again\n",
      read, mixed, moved, reader.torn());
  zero_arena_destroy(arena);
}

void all_ways(const Load& load) {
  one_sided(load);
  rpc("RPC over a unix socket", false, false, load);
  rpc("RPC over TCP", true, false, load);
  rpc("text over TCP", true, true, load);
}

void sweep(double seconds) {
  for (const std::size_t metrics : {std::size_t{64}, kMetrics, kMostMetrics}) {
    for (const double interval_ns : {1e6, 10e6, 100e6}) {
      all_ways({metrics, std::max(5, static_cast<int>(seconds * 1e9 / interval_ns)), interval_ns});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "sweep") {
    sweep(argc > 2 ? std::atof(argv[2]) : 1);
    return 0;
  }
  const int reads = argc > 1 ? std::atoi(argv[1]) : 1000000;
  const auto checked = static_cast<std::uint64_t>(argc > 2 ? std::atof(argv[2]) : 0);
  fmt::print("{:<36} {:>9} {:>10} {:>10} {:>14} {:>14}\n", "512 metrics, by", "reads", "p50 ns",
             "p99 ns", "watched CPU ns", "reader CPU ns");
  one_sided({.reads = reads});
  rpc("RPC over a unix socket", false, false, {.reads = reads / 10});
  rpc("RPC over TCP", true, false, {.reads = reads / 10});
  rpc("text over TCP", true, true, {.reads = reads / 100});
  registering();
  if (checked > 0) integrity(checked);
  return 0;
}
