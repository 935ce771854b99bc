// Metrics over an RDMA device: READs beside RPC by SEND and RECV between the same two processes, for
// 64, 512 and 4096 metrics. The watched process's CPU time is that of its own clock: a READ moves it
// only where the device itself is made of that process's threads, as under `greynic lab-run`.
// Nothing is asserted.
//
// usage: zero_verbs_bench [reads, 10000] [device, the first]

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "rdma.h"

namespace {

using namespace greynic;

constexpr std::array<std::size_t, 3> kMetrics = {64, 512, 4096};
constexpr std::size_t kMostBytes = 4096 * 8;

double now_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  _exit(3);
}

template <typename T>
void give(int socket, const T& value) {
  if (write(socket, &value, sizeof value) != sizeof value) _exit(3);
}
template <typename T>
T take(int socket) {
  T value{};
  if (read(socket, &value, sizeof value) != sizeof value) _exit(3);
  return value;
}

void join(remote::RdmaQueue& queue, int socket) {
  give(socket, queue.end());
  const auto there = take<remote::RdmaEnd>(socket);
  if (auto done = queue.connect(there); !done) _exit(3);
}

void post_receive(remote::RdmaQueue& queue, const verbs::MemoryRegion& into) {
  ibv_sge place{reinterpret_cast<std::uintptr_t>(into.address()), kMostBytes, into.local_key()};
  ibv_recv_wr receive{}, *bad = nullptr;
  receive.sg_list = &place;
  receive.num_sge = 1;
  if (ibv_post_recv(queue.qp().handle(), &receive, &bad) != 0) _exit(3);
}

void post_send(remote::RdmaQueue& queue, const verbs::MemoryRegion& from, std::size_t bytes) {
  ibv_sge place{reinterpret_cast<std::uintptr_t>(from.address()), static_cast<std::uint32_t>(bytes),
                from.local_key()};
  ibv_send_wr send{}, *bad = nullptr;
  send.sg_list = &place;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(queue.qp().handle(), &send, &bad) != 0) _exit(3);
}

/// Until a message has come; completions of sends pass by. Sleeps, as a service that shares its host.
std::size_t await_message(remote::RdmaQueue& queue) {
  for (bool armed = false;;) {
    ibv_wc done{};
    const int count = ibv_poll_cq(queue.cq().handle(), 1, &done);
    if (count < 0 || (count > 0 && done.status != IBV_WC_SUCCESS)) _exit(3);
    if (count > 0 && done.opcode == IBV_WC_RECV) return done.byte_len;
    if (count > 0) continue;
    if (armed) {
      if (!queue.channel().wait()) _exit(3);
    } else if (!queue.cq().arm()) {
      _exit(3);
    }
    armed = !armed;
  }
}

[[noreturn]] void watched(const verbs::Device& device, int socket) {
  std::vector<std::uint64_t> metrics(kMostBytes / 8, 7);
  auto reads = must(remote::RdmaQueue::create(device, 1));
  auto calls = must(remote::RdmaQueue::create(device, 4));
  join(reads, socket);
  join(calls, socket);
  const auto exposed = must(remote::expose(reads, std::as_bytes(std::span(metrics))));
  const auto asked = must(verbs::MemoryRegion::create(calls.pd(), kMostBytes, {}));
  const auto answer = must(verbs::MemoryRegion::create(calls.pd(), kMostBytes, {}));
  post_receive(calls, asked);
  give(socket, remote::Place{exposed.address, exposed.region.remote_key(), exposed.bytes});
  for (;;) {
    await_message(calls);
    const auto bytes = *reinterpret_cast<const std::uint64_t*>(asked.address());
    post_receive(calls, asked);
    std::copy_n(std::as_bytes(std::span(metrics)).data(), bytes, answer.address());
    post_send(calls, answer, bytes);
  }
}

template <typename Look>
void measure(const char* name, std::size_t metrics, pid_t process, int reads, const Look& look) {
  clockid_t clock{};
  clock_getcpuclockid(process, &clock);
  for (int i = 0; i < 50; ++i) look();
  std::vector<double> times;
  const double before = now_of(clock), own = now_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < reads; ++i) {
    const double begin = now_of(CLOCK_MONOTONIC);
    look();
    times.push_back(now_of(CLOCK_MONOTONIC) - begin);
  }
  const double watched_us = (now_of(clock) - before) / reads / 1e3;
  const double reader_us = (now_of(CLOCK_PROCESS_CPUTIME_ID) - own) / reads / 1e3;
  std::sort(times.begin(), times.end());
  fmt::print("{:<14} {:>8} {:>10.1f} {:>10.1f} {:>15.2f} {:>14.2f}\n", name, metrics,
             times[times.size() / 2] / 1e3, times[times.size() * 99 / 100] / 1e3, watched_us,
             reader_us);
}

}  // namespace

int main(int argc, char** argv) {
  const int reads = argc > 1 ? std::atoi(argv[1]) : 10000;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 3;
  const pid_t process = fork();
  const auto names = verbs::device_names();
  if (names.empty()) {
    fmt::print(stderr, "no RDMA device; run under `greynic lab-run --session NAME --host 0 --`\n");
    return 3;
  }
  const auto device = must(remote::shared_device(argc > 2 ? argv[2] : names.front()));
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    watched(*device, ends[1]);
  }
  close(ends[1]);
  remote::RdmaReader reader(must(remote::RdmaQueue::create(*device, remote::RdmaReader::kPosted)),
                            std::chrono::seconds(5));
  auto calls = must(remote::RdmaQueue::create(*device, 4));
  join(reader.queue(), ends[0]);
  join(calls, ends[0]);
  const auto asking = must(verbs::MemoryRegion::create(calls.pd(), kMostBytes, {}));
  const auto answer = must(verbs::MemoryRegion::create(calls.pd(), kMostBytes, {}));
  const auto place = take<remote::Place>(ends[0]);
  std::vector<std::byte> into(kMostBytes);
  fmt::print("{:<14} {:>8} {:>10} {:>10} {:>15} {:>14}\n", device->name(), "metrics", "p50 us",
             "p99 us", "watched CPU us", "reader CPU us");
  for (const std::size_t metrics : kMetrics) {
    const zero::Piece piece{false, 0, std::span(into).first(metrics * 8)};
    measure("READ", metrics, process, reads, [&] {
      if (!reader.read(place, std::span(&piece, 1))) _exit(3);
    });
    measure("SEND and RECV", metrics, process, reads, [&] {
      post_receive(calls, answer);
      *reinterpret_cast<std::uint64_t*>(asking.address()) = metrics * 8;
      post_send(calls, asking, sizeof(std::uint64_t));
      if (await_message(calls) != metrics * 8) _exit(3);
    });
  }
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  return 0;
}
