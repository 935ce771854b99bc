// Bursts: who is named, what is exported, what it costs.
//
//   who      precision and recall by packet against brute force over the packet log of a queue on the
//            twin, for the snapshot rule, in-band telemetry, sampling, ConQuest and Millisampler
//   reports  packets reported against in-band telemetry, thresholds from 1 % to 50 % of the RTT
//   ring     records lost with ten bursts at once over one mirror port
//   replay   CPU time of a packet, in memory and from a capture, and memory as captures grow
//
// Nothing is asserted. usage: burst_bench [who|reports|ring|replay]...

#include <fmt/core.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>

#include "baselines.h"
#include "greynic/burst/fifo.h"
#include "greynic/capture/capture.h"
#include "greynic/twin/bursts.h"

namespace greynic::bench {
namespace {

constexpr double kGbps = 25;
volatile int sink = 0;  ///< what would otherwise be optimised away

struct Score {
  double precision = 0, recall = 0;
};
Score score_of(const std::vector<bool>& truth, const std::vector<bool>& named) {
  double both = 0, all_named = 0, all_true = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    both += truth[i] && named[i] ? 1 : 0;
    all_named += named[i] ? 1 : 0;
    all_true += truth[i] ? 1 : 0;
  }
  return {all_named == 0 ? 1 : both / all_named, all_true == 0 ? 1 : both / all_true};
}

struct Watched {
  Log log;
  std::vector<bool> marked;
};

twin::BurstWorkload workload_of(const std::string& shape, double duration_us,
                                std::uint64_t seed = 3) {
  const std::string path = "/tmp/burst_bench_workload.json";
  std::ofstream(path) << fmt::format(
      R"({{"version":1,"hosts":17,"link_gbps":{},"duration_us":{},"seed":{},"traffic":[{{"kind":"on_off","shape":"{}","to":0}}]}})",
      kGbps, duration_us, seed, shape);
  auto workload = twin::read_burst_workload(path);
  if (!workload) {
    std::fprintf(stderr, "%s\n", workload.error().message.c_str());
    std::exit(2);
  }
  return *workload;
}

Watched watch(const twin::BurstWorkload& workload, std::uint64_t share_e8, burst::Mode mode) {
  Watched out;
  twin::BurstWatchOptions options;
  options.allowance = {.rtt = std::chrono::microseconds(50), .share_e8 = share_e8};
  options.mode = mode;
  options.ports = {{.device = 0, .port = 0}};
  options.departed = [&out](const twin::PacketRecord& record, bool marked) {
    out.log.push_back({twin::flow_of(record), record.bytes, record.enqueued, record.dequeued,
                       record.depth_at_enqueue});
    out.marked.push_back(marked);
  };
  (void)twin::watch_bursts(workload, options);
  return out;
}

std::uint64_t threshold_of(std::uint64_t share_e8) {
  return burst::Allowance{.rtt = std::chrono::microseconds(50),
                          .share_e8 = share_e8,
                          .bits_per_second = static_cast<std::uint64_t>(kGbps * 1e9)}
      .threshold_bytes();
}

double cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Nanoseconds of CPU for each packet; the least of five.
double cost_of(std::size_t packets, const std::function<void()>& work) {
  double least = 1e18;
  for (int i = 0; i < 5; ++i) {
    const double start = cpu_ns();
    work();
    least = std::min(least, cpu_ns() - start);
  }
  return least / static_cast<double>(packets);
}

/// How many packets the rule marks, alone, over a log in the order of events.
int run_rule(const Log& log, std::uint64_t threshold, bool dequeue_only = false) {
  burst::SnapshotRule rule{};
  int marked = 0;
  std::uint64_t depth = 0;
  std::size_t leaves = 0;
  for (const Logged& one : log) {
    for (; depth + one.bytes > one.depth; ++leaves) {
      depth -= log[leaves].bytes;
      marked += snapshot_dequeue(&rule, threshold, log[leaves].bytes, depth);
    }
    depth += one.bytes;
    if (!dequeue_only) (void)snapshot_enqueue(&rule, threshold, one.bytes, depth);
  }
  for (; leaves < log.size(); ++leaves) {
    depth -= log[leaves].bytes;
    marked += snapshot_dequeue(&rule, threshold, log[leaves].bytes, depth);
  }
  return marked;
}

void who() {
  constexpr std::uint64_t kShare = 5'000'000;
  const std::uint64_t threshold = threshold_of(kShare);
  for (const char* shape : {"web", "cache", "hadoop"}) {
    const auto workload = workload_of(shape, 400e3);
    const Watched armed = watch(workload, kShare, burst::Mode::kArmedAtEnqueue);
    const Watched leaving = watch(workload, kShare, burst::Mode::kDequeueOnly);
    const Log& log = armed.log;
    const auto truth = oracle(log, threshold);
    const auto exported = [](const std::vector<bool>& marked) {
      return static_cast<std::uint64_t>(std::ranges::count(marked, true)) * kRecordBytes;
    };
    fmt::print("\n{}: {} packets, {} took part\n", shape, log.size(),
               std::ranges::count(truth, true));
    const auto row = [&](const char* name, const Named& named, double cost) {
      const Score score = score_of(truth, named.packets);
      fmt::print("  {:<28} precision {:.4f}  recall {:.4f}  {:>9} B  {:>6.1f} ns\n", name,
                 score.precision, score.recall, named.exported_bytes, cost);
    };
    const double rule = cost_of(log.size(), [&] { sink = run_rule(log, threshold); });
    row("snapshot, armed at enqueue", {armed.marked, exported(armed.marked)}, rule);
    row("snapshot, dequeue only", {leaving.marked, exported(leaving.marked)}, rule);
    row("in-band, every packet", every_packet(log),
        cost_of(log.size(), [&] { (void)every_packet(log); }));
    row("sampling 1:100", sampled(log, 100), cost_of(log.size(), [&] { (void)sampled(log, 100); }));
    row("ConQuest", conquest(log, threshold),
        cost_of(log.size(), [&] { (void)conquest(log, threshold); }));
    for (const double us : {100.0, 1000.0, 10000.0}) {
      row(fmt::format("Millisampler {:g} us", us).c_str(), buckets(log, us * 1e3, kGbps),
          cost_of(log.size(), [&] { (void)buckets(log, us * 1e3, kGbps); }));
    }
  }
}

/// In-band telemetry reports every packet, the snapshot the marked ones. Twenty seeds, 100 ms each;
/// the packets of a seed are the same for all thresholds.
void reports() {
  constexpr std::uint64_t kSeeds = 20;
  constexpr std::array<std::uint64_t, 7> kPercents = {1, 2, 5, 10, 20, 30, 50};
  fmt::print(
      "\nreports: in-band telemetry over marked packets, by threshold in shares of a RTT of 50 us; "
      "mean of {} seeds and its standard error, the worst seed, and all seeds together\n",
      kSeeds);
  for (const char* shape : {"web", "cache", "hadoop"}) {
    std::array<std::array<std::vector<double>, kPercents.size()>, 2> ratios;
    std::array<std::array<double, kPercents.size()>, 2> marked{};
    double packets = 0;
    for (std::uint64_t seed = 100; seed < 100 + kSeeds; ++seed) {
      const Watched seen =
          watch(workload_of(shape, 100e3, seed), 5'000'000, burst::Mode::kArmedAtEnqueue);
      packets += static_cast<double>(seen.log.size());
      for (const std::size_t leaving : {0U, 1U}) {
        for (std::size_t i = 0; i < kPercents.size(); ++i) {
          const int named =
              run_rule(seen.log, threshold_of(kPercents[i] * 1'000'000), leaving == 1);
          marked[leaving][i] += named;
          ratios[leaving][i].push_back(static_cast<double>(seen.log.size()) / std::max(1, named));
        }
      }
    }
    for (const std::size_t leaving : {0U, 1U}) {
      fmt::print("  {}, {}\n", shape, leaving == 1 ? "dequeue only" : "armed at enqueue");
      for (std::size_t i = 0; i < kPercents.size(); ++i) {
        double sum = 0, squares = 0;
        for (const double ratio : ratios[leaving][i]) {
          sum += ratio;
          squares += ratio * ratio;
        }
        const double mean = sum / kSeeds;
        fmt::print("    {:>2} %: {:>8.1f} +- {:.1f}, worst {:.1f}, together {:.1f}\n", kPercents[i],
                   mean, std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1)),
                   std::ranges::min(ratios[leaving][i]),
                   packets / std::max(1.0, marked[leaving][i]));
      }
    }
    std::fflush(stdout);
  }
}

/// When packets leave that took part, and their queue: ten queues of 10 Gbit/s that fill at once,
/// at twice their rate, threshold 1.25 us.
std::vector<std::pair<std::uint64_t, std::size_t>> ten_bursts(std::uint32_t bytes,
                                                              double burst_us) {
  constexpr std::size_t kQueues = 10;
  std::vector<burst::QueueState> states(kQueues);
  burst::Snapshot snapshot(states, {});
  std::vector<burst::Fifo> queues(kQueues, burst::Fifo(10'000'000'000));
  for (auto& state : states) state.threshold_bytes = 1562;
  std::vector<std::pair<std::uint64_t, std::size_t>> leaving;
  const double gap = bytes * 8 / 20.0;
  for (std::size_t q = 0; q < kQueues; ++q) {
    const auto leave = [&](const burst::Fifo::Packet& packet, std::uint64_t, std::uint64_t depth,
                           std::uint64_t time) {
      if (snapshot.on_dequeue(q, packet.bytes, depth, time)) leaving.emplace_back(time, q);
    };
    for (double t = static_cast<double>(q) * 37; t < burst_us * 1e3; t += gap) {
      const auto now = static_cast<std::uint64_t>(t);
      queues[q].drain(now, leave);
      snapshot.on_enqueue(q, bytes, queues[q].arrive(now, bytes)->depth_at_arrival, now);
    }
    queues[q].drain_all(leave);
  }
  std::ranges::sort(leaving);
  return leaving;
}

/// The ring after all of that, emptied over a mirror port: a frame of 84 bytes on the wire a record.
burst::RecordRing ring_after(const std::vector<std::pair<std::uint64_t, std::size_t>>& leaving,
                             double mirror_gbps, std::vector<burst::CourierRecord>& storage) {
  burst::RecordRing ring(storage);
  double free = 0;
  const double each = 84 * 8 / mirror_gbps;
  for (const auto& [time, queue] : leaving) {
    const auto now = static_cast<double>(time);
    burst::CourierRecord record;
    while (ring.size() > 0 && free + each <= now) {
      free += each;
      ring.pop(record);
    }
    if (ring.size() == 0) free = std::max(free, now);
    ring.push(burst::courier_record(queue, 0, {}, 0, time, time, 0, 0));
  }
  return ring;
}

void ring() {
  fmt::print("\nring: ten bursts at once in ports of 10 Gbit/s, 84 bytes a record\n");
  std::vector<burst::CourierRecord> few(300), many(1000), endless(1 << 20);
  for (const std::uint32_t bytes : {1500U, 1000U, 700U, 400U, 200U, 64U}) {
    for (const double burst_us : {50.0, 200.0}) {
      const auto leaving = ten_bursts(bytes, burst_us);
      for (const double mirror_gbps : {10.0, 25.0, 100.0}) {
        const auto lost = [&](std::vector<burst::CourierRecord>& storage) {
          return 100.0 * static_cast<double>(ring_after(leaving, mirror_gbps, storage).lost()) /
                 static_cast<double>(leaving.size());
        };
        fmt::print(
            "  {:>4} B, {:>3.0f} us, mirror {:>3.0f} Gbit/s: {:>6} marked, 300 entries lose {:.2f} "
            "%, 1,000 lose {:.2f} %, {} lose none\n",
            bytes, burst_us, mirror_gbps, leaving.size(), lost(few), lost(many),
            ring_after(leaving, mirror_gbps, endless).most());
      }
    }
  }
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// A capture of trains and pauses, 64 bytes of each frame kept.
void write_capture(const std::string& path, std::uint64_t packets, double gap_ns) {
  std::ofstream out(path, std::ios::binary);
  const auto put = [&out](std::uint32_t word) {
    out.write(reinterpret_cast<const char*>(&word), 4);
  };
  for (const std::uint32_t word : {0xa1b23c4dU, 0x00040002U, 0U, 0U, 64U, 1U}) put(word);
  statistics::Random random(5);
  std::string frame(64, '\0');
  frame[12] = 8;
  frame[14] = 0x45;
  frame[23] = 17;
  double time = 1e9;
  for (std::uint64_t i = 0; i < packets; ++i) {
    time += random.below(64) == 0 ? 40e3 * random.uniform() : 2 * gap_ns * random.uniform();
    const auto ns = static_cast<std::uint64_t>(time);
    frame[29] = static_cast<char>(random.below(32));
    for (const std::uint64_t word : {ns / 1'000'000'000, ns % 1'000'000'000, std::uint64_t{64},
                                     std::uint64_t{64} + random.below(200)}) {
      put(static_cast<std::uint32_t>(word));
    }
    out.write(frame.data(), 64);
  }
}

void replay() {
  fmt::print("\nreplay: 10 Gbit/s, 5 % of 25 us\n");
  burst::ReplayOptions options;
  options.allowance = {std::chrono::microseconds(25), 5'000'000, 10'000'000'000};
  options.found = [](const burst::Findings&, const burst::Burst&) {};
  // Frames of 164 bytes take 131 ns: gaps of 60 ns pile up, of 150 ns sometimes, of 200 ns seldom.
  for (const auto& [packets, gap_ns] :
       std::vector<std::pair<std::uint64_t, double>>{{2'000'000, 200},
                                                     {8'000'000, 200},
                                                     {2'000'000, 150},
                                                     {2'000'000, 60},
                                                     {8'000'000, 60}}) {
    const std::string path = "/tmp/burst_bench.pcap";
    write_capture(path, packets, gap_ns);
    std::uint64_t marked = 0, bursts = 0;
    const double ns = cost_of(packets, [&] {
      const auto found = capture::replay_capture(path, options);
      marked = found->packets_marked;
      bursts = found->tally.bursts();
    });
    std::vector<burst::FlowKey> flows(32);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      flows[i].kind = burst::FlowKey::kIpv4;
      flows[i].source[3] = static_cast<std::uint8_t>(i);
    }
    const double memory_ns = cost_of(packets, [&, gap = gap_ns] {
      burst::Replay queue(options);
      statistics::QuickRandom random(5);
      double time = 0;
      for (std::uint64_t i = 0; i < packets; ++i) {
        time += random.below(64) == 0 ? 20e3 : gap;
        (void)queue.add(static_cast<std::uint64_t>(time), 64 + random.below(200),
                        flows[random.below(32)]);
      }
      (void)queue.finish();
    });
    fmt::print(
        "  {} packets, {} marked, {} bursts: {:.1f} ns a packet from a capture ({:.1f} M/s), "
        "{:.1f} ns in memory ({:.1f} M/s); peak {} MiB\n",
        packets, marked, bursts, ns, 1e3 / ns, memory_ns, 1e3 / memory_ns, peak_kib() / 1024);
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace greynic::bench

int main(int argc, char** argv) {
  using namespace greynic::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto asked = [&](const char* name) {
    return words.empty() || std::ranges::find(words, name) != words.end();
  };
  if (asked("who")) who();
  if (asked("reports")) reports();
  if (asked("ring")) ring();
  if (asked("replay")) replay();
  return 0;
}
