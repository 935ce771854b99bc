// The program of `greynic bursts --live` in the kernel, at a device that takes packets and drops them
// (ifb), in a network namespace of our own.
//
//   cost              of a packet at tbf and htb, by CPU time, in rounds alternating between nothing,
//                     programs that do nothing (at the queue, and at its way in and the transmission),
//                     ours never over the threshold, and ours with a record
//                     of every packet; and what the kernel itself counts as the programs' run time
//   endure [SECONDS]  100,000 packets a second through htb, 100 bursts a second among them, an hour
//                     unless said otherwise: a line every ten seconds with what was seen, lost, and
//                     how much memory is held
//
// Nothing is asserted. usage: live_bench cost | live_bench endure [SECONDS]

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/core.h>
#include <linux/if_packet.h>
#include <net/if.h>
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
#include "greynic/bpf/object.h"
#include "greynic/live/live.h"
#include "live/pair.h"

namespace greynic::bench {

std::span<const EmbeddedFile> empty_programs();

namespace {

using live::LiveOptions;
using live::LiveProbe;

constexpr std::size_t kBatch = 50;

/// UDP over IPv4 in frames of 64 bytes, a batch of as many flows, handed to the device's queue.
class Sender {
 public:
  explicit Sender(int priority) : socket_(::socket(AF_PACKET, SOCK_RAW, 0)) {
    const int room = 64 << 20;
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    ::setsockopt(socket_, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(::if_nametoindex("sink"));
    to.sll_protocol = htons(0x0800);
    ::bind(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to);
    for (std::size_t i = 0; i < kBatch; ++i) {
      frames_[i] = {2, 0,  0,    0, 0, 2,  2,  0, 0, 0, 0,  1,
                    8, 0,  0x45, 0, 0, 50, 0,  0, 0, 0, 64, 17,
                    0, 0,  10,   9, 0, 1,  10, 9, 0, 2, 39, static_cast<std::uint8_t>(i),
                    0, 80, 0,    30};
      parts_[i] = {frames_[i].data(), frames_[i].size()};
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() { ::close(socket_); }
  void send() { (void)::sendmmsg(socket_, messages_.data(), kBatch, 0); }

 private:
  int socket_;
  std::array<std::array<std::uint8_t, 64>, kBatch> frames_{};
  std::array<iovec, kBatch> parts_{};
  std::array<mmsghdr, kBatch> messages_{};
};

/// Sums over all descriptors of this process that the kernel calls `kind`, by the words of fdinfo;
/// "descriptors": how many there are.
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
    ++sums["descriptors"];
  }
  ::closedir(folder);
  return sums;
}

double thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// CPU time of a packet from the call to its end in the device: a queue that never waits is emptied in
/// the sender's own time.
double packet_ns(std::size_t packets) {
  Sender sender(0);
  sender.send();
  const double start = thread_ns();
  for (std::size_t i = 0; i < packets; i += kBatch) sender.send();
  return (thread_ns() - start) / static_cast<double>(packets);
}

template <typename T>
T value_of(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(3);
}

/// A namespace with a device "sink" whose queue `commands` make.
os::NetworkNamespace sink_with(std::vector<std::string> commands) {
  auto place = value_of(os::NetworkNamespace::create());
  commands.insert(commands.begin(),
                  {"ip link add sink type ifb", "ip link set sink addrgenmode none",
                   "ip link set sink txqueuelen 1000 up"});
  if (const auto done = live::run_in(place, commands); !done) {
    fmt::print(stderr, "{}\n", done.error().message);
    std::exit(3);
  }
  return place;
}

std::unique_ptr<LiveProbe> quiet_probe(bool every_packet = false) {
  LiveOptions options;
  options.interface = "sink";
  options.allowance = {std::chrono::seconds(10), 100'000'000, 10'000'000'000};
  options.every_packet = every_packet;
  options.ring_records = 1 << 15;  // those of a round
  return value_of(LiveProbe::open(options));
}

/// A record of every packet, and somebody who reads them.
struct Telemetry {
  Telemetry()
      : probe(quiet_probe(true)), reader([this] {
          while (!over) (void)probe->poll(std::chrono::milliseconds(1));
        }) {}
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;
  ~Telemetry() {
    over = true;
    reader.join();
  }
  std::unique_ptr<LiveProbe> probe;
  std::atomic<bool> over{false};
  std::thread reader;
};

struct Empty {
  bpf::Object object;
  std::vector<bpf::Link> links;
};
Empty attach_empty(const char* at_departure) {
  Empty empty{value_of(bpf::Object::open(empty_programs().front())), {}};
  (void)value_of(empty.object.load().map([] { return true; }));
  for (const char* program : {"on_enqueue", at_departure}) {
    empty.links.push_back(value_of(empty.object.attach(program)));
  }
  return empty;
}

std::string spread(std::vector<double> all) {
  std::ranges::sort(all);
  const auto at = [&](double share) {
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  };
  return fmt::format("{:5.0f} ns, half of the rounds {:.0f} to {:.0f}", at(0.5), at(0.25),
                     at(0.75));
}

/// What the kernel counts as run time of programs that `attach` brings. Counting itself costs time,
/// so it is done apart from the rounds. Packets of other devices run them, too, for a short while.
template <typename Attach>
std::string counted_by_kernel(std::size_t packets, const Attach& attach) {
  const bpf::Link counting = bpf::count_run_time();
  const auto attached = attach();
  (void)packet_ns(packets);
  auto sums = descriptor_sums("prog_tag:");
  const auto runs = static_cast<double>(std::max<std::uint64_t>(sums["run_cnt:"], 1));
  return fmt::format("{:.0f} ns in each of {:.2f} runs",
                     static_cast<double>(sums["run_time_ns:"]) / runs,
                     runs / static_cast<double>(packets + kBatch));
}

void cost_at(const std::string& name, const std::vector<std::string>& commands) {
  constexpr std::size_t kPackets = 20'000, kRounds = 15;
  const auto place = sink_with(commands);
  std::vector<double> without, empty, transmitted, quiet, every;
  std::string empty_counted, quiet_counted;
  (void)place.inside([&] {
    (void)packet_ns(10 * kPackets);
    double before = packet_ns(kPackets);
    // What more a packet costs than in the two rounds beside it without a program.
    const auto round = [&](std::vector<double>& more, const auto& attach) {
      double with = 0;
      {
        const auto attached = attach();
        (void)packet_ns(kPackets / 10);
        with = packet_ns(kPackets);
      }
      (void)packet_ns(kPackets / 10);
      const double after = packet_ns(kPackets);
      more.push_back(with - (before + after) / 2);
      without.push_back(before);
      before = after;
    };
    const auto attach_at_dequeue = [] { return attach_empty("on_dequeue"); };
    for (std::size_t i = 0; i < kRounds; ++i) {
      round(empty, attach_at_dequeue);
      round(transmitted, [] { return attach_empty("on_transmit"); });
      round(quiet, [] { return quiet_probe(); });
      round(every, [] { return std::make_unique<Telemetry>(); });
    }
    empty_counted = counted_by_kernel(10 * kPackets, attach_at_dequeue);
    quiet_counted = counted_by_kernel(10 * kPackets, [] { return quiet_probe(); });
  });
  fmt::print("{}, {} rounds of {} packets\n", name, kRounds, kPackets);
  fmt::print("  a packet without a program            {}\n", spread(without));
  fmt::print("  more with programs that do nothing    {}; by the kernel's count {}\n",
             spread(empty), empty_counted);
  fmt::print("  more where they see transmissions     {}\n", spread(transmitted));
  fmt::print("  more with both hooks, nothing marked  {}; by the kernel's count {}\n",
             spread(quiet), quiet_counted);
  fmt::print("  more with a record of every packet    {}\n", spread(every));
}

/// A queue that is seldom empty: who sends does not pay for departures, so the kernel's count decides.
void cost_of_waiting() {
  constexpr std::size_t kPackets = 200'000;
  const auto place =
      sink_with({"tc qdisc replace dev sink root tbf rate 100mbit burst 2kb limit 1mb"});
  (void)place.inside([&] {
    fmt::print("tbf, packets wait\n");
    fmt::print("  programs that do nothing    {} a packet sent\n",
               counted_by_kernel(kPackets, [] { return attach_empty("on_dequeue"); }));
    fmt::print("  both hooks, nothing marked  {} a packet sent\n",
               counted_by_kernel(kPackets, [] { return quiet_probe(); }));
  });
}

void cost() {
  cost_at("tbf", {"tc qdisc replace dev sink root tbf rate 40gbit burst 10mb limit 10mb"});
  cost_at("htb, two classes",
          {"tc qdisc add dev sink root handle 1: htb default 10 r2q 100000",
           "tc class add dev sink parent 1: classid 1:10 htb rate 40gbit burst 10mb cburst 10mb",
           "tc class add dev sink parent 1: classid 1:20 htb rate 40gbit burst 10mb cburst 10mb"});
  cost_of_waiting();
}

/// 2,000 batches a second, each twentieth into a class that takes 0.6 ms for it.
void send_until(const std::atomic<bool>& over) {
  Sender fast(0x10010), slow(0x10020);
  auto next = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; !over; ++i) {
    (i % 20 == 19 ? slow : fast).send();
    next += std::chrono::nanoseconds(kBatch * 10'000);
    // After a long wait for the processor the rest is not sent at once.
    next = std::max(next, std::chrono::steady_clock::now() - std::chrono::milliseconds(200));
    std::this_thread::sleep_until(next);
  }
}

void endure(std::uint64_t seconds) {
  const auto place = sink_with(
      {"tc qdisc add dev sink root handle 1: htb default 10 r2q 100000",
       "tc class add dev sink parent 1: classid 1:10 htb rate 10gbit burst 1mb cburst 1mb",
       "tc class add dev sink parent 1: classid 1:20 htb rate 30mbit burst 1kb cburst 1kb"});
  (void)place.inside([&] {
    LiveOptions options;
    options.interface = "sink";
    options.allowance = {std::chrono::microseconds(100), 100'000'000, 30'000'000};
    options.ring_records = 1 << 16;
    const auto probe = value_of(LiveProbe::open(options));
    std::atomic<bool> over{false};
    std::thread sender([&] { send_until(over); });
    const auto start = std::chrono::steady_clock::now();
    fmt::print(
        "seconds,seen,marked,lost,left_unseen,bursts,rss_kib,maps,maps_kib,programs_and_links,"
        "cpu_s\n");
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
      auto maps = descriptor_sums("map_type:");
      fmt::print("{},{},{},{},{},{},{},{},{},{},{}\n", told, found.packets_seen,
                 found.packets_marked, found.records_lost, found.left_unseen, found.tally.bursts(),
                 pages * 4, maps["descriptors"], maps["memlock:"] / 1024,
                 descriptor_sums("prog_tag:")["descriptors"],
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
