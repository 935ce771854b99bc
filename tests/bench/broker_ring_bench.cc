// The ring of requests between two processes, both polling: requests a second, and how many bytes
// that wake were sent. Then with a reader that sleeps whenever the ring is empty. Five runs of each
// in turn. "While it works" leaves out the time in which the reader looks at an empty ring, so it
// says the same on a busy machine. First, what a request costs both ends together: one thread
// writes and reads in turn, by its processor time. Nothing is asserted.
//
// usage: broker_ring_bench [seconds]

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "greynic/broker/local.h"

namespace {

using namespace greynic::broker::local;

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Writes until told to stop; how many bytes that wake it sent.
void write_requests(std::byte* base, int socket, double seconds) {
  auto& places = *reinterpret_cast<Places*>(base);
  RequestWriter writer(base + kRequestsAt, places.request_written, places.request_read);
  std::uint64_t count = 0;
  std::uint32_t wakes = 0;
  for (const double end = now() + seconds; now() < end;) {
    for (int i = 0; i < 256;) {
      if (!writer.has_room()) {
        __builtin_ia32_pause();
        if (now() > end) break;
        continue;
      }
      writer.write({.kind = RequestKind::kSend, .connection = 7, .value = ++count});
      ++i;
      if (must_wake(places.broker_sleeps)) {
        const char byte = 0;
        wakes += ::send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 1 : 0;
      }
    }
  }
  while (!writer.has_room()) __builtin_ia32_pause();
  writer.write({.kind = RequestKind::kClose, .connection = wakes});
  const char byte = 0;
  (void)::send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  _exit(0);
}

void run(bool sleeps, double seconds) {
  const int flags = MAP_SHARED | MAP_ANONYMOUS;
  auto* base =
      static_cast<std::byte*>(mmap(nullptr, kDataAt, PROT_READ | PROT_WRITE, flags, -1, 0));
  auto& places = *new (base) Places();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) std::exit(3);
  const pid_t child = fork();
  if (child == 0) write_requests(base, ends[0], seconds);
  RequestReader reader(base + kRequestsAt, places.request_written, places.request_read);
  const double begin = now();
  double working = 0;
  std::uint64_t count = 0, wrong = 0;
  for (bool open = true; open;) {
    const std::uint32_t waiting = reader.waiting();
    if (waiting == 0 && sleeps) {
      say_asleep(places.broker_sleeps);
      char byte = 0;
      if (reader.waiting() == 0) (void)!::recv(ends[1], &byte, 1, 0);
      places.broker_sleeps.store(0, std::memory_order_relaxed);
    }
    if (waiting == 0) continue;
    const double cpu_begin = cpu_seconds();
    for (std::uint32_t i = 0; i < waiting; ++i) {
      const Request request = reader.read();
      if (request.kind == RequestKind::kClose) {
        const double took = now() - begin;
        fmt::print("{:8}  {:7.2f}  {:20.2f}  {:15}  {:5}\n", sleeps ? "sleeping" : "polling",
                   static_cast<double>(count) / took * 1e-6,
                   static_cast<double>(count) / working * 1e-6, request.connection, wrong);
        open = false;
        break;
      }
      wrong += request.value != ++count;
    }
    reader.release();
    working += cpu_seconds() - cpu_begin;
  }
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  munmap(base, kDataAt);
}

void cost_of_both_ends() {
  constexpr std::uint64_t kBatches = 20000, kBatch = 512;
  static std::byte memory[kDataAt];
  auto& places = *new (memory) Places();
  RequestWriter writer(memory + kRequestsAt, places.request_written, places.request_read);
  RequestReader reader(memory + kRequestsAt, places.request_written, places.request_read);
  std::uint64_t count = 0, wrong = 0, wakes = 0;
  const double begin = cpu_seconds();
  for (std::uint64_t b = 0; b < kBatches; ++b) {
    for (std::uint64_t i = 0; i < kBatch && writer.has_room(); ++i) {
      writer.write({.kind = RequestKind::kSend, .connection = 7, .value = b * kBatch + i});
      wakes += must_wake(places.broker_sleeps) ? 1 : 0;
    }
    const std::uint32_t waiting = reader.waiting();
    for (std::uint32_t i = 0; i < waiting; ++i) wrong += reader.read().value != count++;
    reader.release();
  }
  const double took = cpu_seconds() - begin;
  fmt::print("both ends: {:.1f} ns of processor a request, {:.1f} M/s a core, {} wrong, {} wakes\n",
             took / static_cast<double>(count) * 1e9, static_cast<double>(count) / took * 1e-6,
             wrong, wakes);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  cost_of_both_ends();
  fmt::print("reader        M/s  M/s while it works  bytes that wake  wrong\n");
  for (int i = 0; i < 5; ++i) {
    run(false, seconds);
    run(true, seconds);
  }
}
