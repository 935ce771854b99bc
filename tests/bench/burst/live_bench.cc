// The program of `greynic bursts --live` in the kernel, at a queue of a network namespace of our own.
//
//   cost              CPU time of a packet, in rounds without the program, with it but never over the
//                     threshold, and with a record of every packet; and what the kernel itself
//                     counts as the programs' run time
//   endure [SECONDS]  100,000 packets a second through htb, an hour unless said otherwise: a line
//                     every ten seconds with what was seen, lost, and how much memory is held
//
// Nothing is asserted. usage: live_bench cost | live_bench endure [SECONDS]

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <thread>

#include "greynic/bpf/link.h"
#include "greynic/live/live.h"
#include "live/pair.h"

namespace greynic::bench {
namespace {

using live::LiveOptions;
using live::LiveProbe;

constexpr std::size_t kBatch = 50;

/// Datagrams of 64 bytes to the peer, who knows nobody at that address.
class Sender {
 public:
  explicit Sender(int priority) : socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    const int room = 64 << 20;
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    ::setsockopt(socket_, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
    to_.sin_family = AF_INET;
    to_.sin_port = htons(9000);
    ::inet_pton(AF_INET, "10.9.0.2", &to_.sin_addr);
    part_ = {payload_.data(), payload_.size()};
    for (mmsghdr& one : messages_) {
      one.msg_hdr.msg_name = &to_;
      one.msg_hdr.msg_namelen = sizeof to_;
      one.msg_hdr.msg_iov = &part_;
      one.msg_hdr.msg_iovlen = 1;
    }
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() { ::close(socket_); }
  void send() { (void)::sendmmsg(socket_, messages_.data(), kBatch, 0); }

 private:
  int socket_;
  sockaddr_in to_{};
  std::array<char, 22> payload_{};
  iovec part_{};
  std::array<mmsghdr, kBatch> messages_{};
};

/// Sums over all descriptors of this process that the kernel calls `kind`, by the words of fdinfo.
std::map<std::string, std::uint64_t> descriptor_sums(const std::string& kind) {
  std::map<std::string, std::uint64_t> sums;
  DIR* const folder = ::opendir("/proc/self/fdinfo");
  while (const dirent* entry = ::readdir(folder)) {
    std::ifstream file(std::string("/proc/self/fdinfo/") + entry->d_name);
    std::map<std::string, std::uint64_t> words;
    std::string word, value;
    while (file >> word >> value) words[word] = std::strtoull(value.c_str(), nullptr, 10);
    if (!words.contains(kind)) continue;
    for (const auto& [name, number] : words) sums[name] += number;
  }
  ::closedir(folder);
  return sums;
}

double thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// CPU time of a packet from the call to its end at the peer: a queue that never waits is emptied in
/// the sender's own time.
double packet_ns(std::size_t packets) {
  Sender sender(0);
  sender.send();
  const double start = thread_ns();
  for (std::size_t i = 0; i < packets; i += kBatch) sender.send();
  return (thread_ns() - start) / static_cast<double>(packets);
}

LiveOptions options_for(bool every_packet) {
  LiveOptions options;
  options.interface = "va";
  options.allowance = {std::chrono::seconds(10), 100'000'000, 10'000'000'000};
  options.every_packet = every_packet;
  return options;
}

template <typename T>
T value_of(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(3);
}

std::string spread(std::vector<double> all) {
  std::ranges::sort(all);
  const auto at = [&](double share) {
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  };
  return fmt::format("median {:.0f} ns, half of the rounds {:.0f} to {:.0f}", at(0.5), at(0.25),
                     at(0.75));
}

void cost() {
  constexpr std::size_t kPackets = 20'000, kRounds = 20;
  const auto pair = value_of(
      live::Pair::make({"tc qdisc replace dev va root tbf rate 40gbit burst 10mb limit 10mb"}));
  std::vector<double> without, quiet, every;
  std::uint64_t runs = 0, run_ns = 0;
  (void)pair.here.inside([&] {
    (void)packet_ns(kPackets);
    for (std::size_t round = 0; round < kRounds; ++round) {
      const double base = packet_ns(kPackets);
      {
        const auto probe = value_of(LiveProbe::open(options_for(false)));
        quiet.push_back(packet_ns(kPackets) - base);
      }
      {
        const auto probe = value_of(LiveProbe::open(options_for(true)));
        std::atomic<bool> over{false};
        std::thread reader([&] {
          while (!over) (void)probe->poll(std::chrono::milliseconds(1));
        });
        every.push_back(packet_ns(kPackets) - base);
        over = true;
        reader.join();
      }
      without.push_back(base);
    }
    // Counting itself costs time, so it is done apart.
    const bpf::Link counting = bpf::count_run_time();
    const auto probe = value_of(LiveProbe::open(options_for(false)));
    for (int i = 0; i < 20; ++i) (void)packet_ns(kPackets);
    auto sums = descriptor_sums("prog_tag:");
    runs = sums["run_cnt:"];
    run_ns = sums["run_time_ns:"];
  });
  fmt::print("a packet without the program: {}\n", spread(without));
  fmt::print("more with both hooks, nothing marked: {}\n", spread(quiet));
  fmt::print("more with a record of every packet: {}\n", spread(every));
  // One arrival, one departure, and one look at the queue that finds it empty.
  const double packets = 20.0 * (kPackets + kBatch);
  fmt::print("the kernel's own count: {:.0f} ns a packet, in {:.2f} runs of {:.0f} ns\n",
             static_cast<double>(run_ns) / packets, static_cast<double>(runs) / packets,
             static_cast<double>(run_ns) / static_cast<double>(std::max<std::uint64_t>(runs, 1)));
}

void endure(std::uint64_t seconds) {
  const auto pair = value_of(live::Pair::make(
      {"tc qdisc add dev va root handle 1: htb default 10 r2q 100",
       "tc class add dev va parent 1: classid 1:10 htb rate 30mbit burst 2kb cburst 2kb",
       "tc class add dev va parent 1: classid 1:20 htb rate 30mbit burst 2kb cburst 2kb"}));
  std::atomic<bool> over{false};
  (void)pair.here.inside([&] {
    LiveOptions options;
    options.interface = "va";
    options.allowance = {std::chrono::microseconds(100), 30'000'000, 30'000'000};
    const auto probe = value_of(LiveProbe::open(options));
    std::thread sender([&] {
      Sender first(0x10010), second(0x10020);
      auto next = std::chrono::steady_clock::now();
      for (std::uint64_t i = 0; !over; ++i) {
        (i % 2 == 0 ? first : second).send();
        next += std::chrono::nanoseconds(kBatch * 10'000);
        // After a long wait for the processor the rest is not sent at once: the queues drop it.
        next = std::max(next, std::chrono::steady_clock::now() - std::chrono::milliseconds(20));
        std::this_thread::sleep_until(next);
      }
    });
    const auto start = std::chrono::steady_clock::now();
    fmt::print("seconds,seen,marked,lost,left_unseen,bursts_kept,rss_kib,maps_kib,cpu_s\n");
    for (std::uint64_t told = 0; told < seconds;) {
      (void)probe->poll(std::chrono::milliseconds(20));
      const auto now = static_cast<std::uint64_t>(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      if (now < told + 10) continue;
      told = now;
      const auto found = probe->findings();
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      std::ifstream status("/proc/self/statm");
      std::uint64_t pages = 0;
      status >> pages >> pages;
      fmt::print("{},{},{},{},{},{},{},{},{}\n", told, found.packets_seen, found.packets_marked,
                 found.records_lost, found.left_unseen, found.bursts.size(), pages * 4,
                 descriptor_sums("map_type:")["memlock:"] / 1024,
                 usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
      std::fflush(stdout);
    }
    over = true;
    sender.join();
  });
}

}  // namespace
}  // namespace greynic::bench

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "cost") {
    greynic::bench::cost();
  } else if (what == "endure") {
    greynic::bench::endure(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 3600);
  } else {
    fmt::print(stderr, "usage: live_bench cost | live_bench endure [SECONDS]\n");
    return 2;
  }
  return 0;
}
