// Speed of the twin: CPU time of a simulated packet on ScalaCN's workload, how it grows with QPs,
// masks, message size and senders that meet at one receiver, and what it costs to set a QP up. What
// a run costs before its packets flow (QPs laid out, queues filled) cancels: each point is the
// difference of a run and one of twice its length. Points are measured in turn, five rounds of all,
// so that a slow phase of the machine meets them alike; the least of each run counts, for what
// others on the machine add is not the simulator's cost. Nothing is asserted.
//
// usage: twin_bench [rounds] [QPs]     QPs: only 8 MiB over so many

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace {

using namespace greynic::twin;

constexpr double kPackets = 1e6;
constexpr double kNoise = 0.05;  ///< by which the least of a few runs may differ from the next

struct Point {
  std::uint32_t qps;
  double masks;
  std::uint64_t message_bytes;
  std::uint32_t senders = 1;  ///< with so many QPs each
  bool dcqcn = false;
  double once = 1e9, twice = 1e9;  ///< least seconds of a run, and of one of twice the length
  double packets = 0;              ///< that the second has more

  [[nodiscard]] double packet_ns() const { return (twice - once) / packets * 1e9; }
  [[nodiscard]] double qp_ns() const { return (2 * once - twice) * 1e9 / (qps * senders); }
};

/// CPU seconds and packets of one run.
struct Cost {
  double seconds;
  double packets;
};

Cost run(const Parameters& parameters, const Point& point, double packets, std::uint64_t seed) {
  HostLoad w;
  w.qp_count = point.qps;
  w.message_bytes = {point.message_bytes};
  // Queues of many QPs are shallow, or filling them would take longer than the run.
  w.send_depth = point.qps > 1000 || point.senders > 1 ? 4 : 128;
  w.sender_count = point.senders;
  w.dcqcn = point.dcqcn;
  w.walk(greynic::Hop::kServerDecap).groups = point.masks;
  const std::clock_t began = std::clock();
  Engine engine(parameters, w, Effects{}, seed);
  RunLimits limits;
  limits.duration = kNever;
  limits.target_error = -1;  // never sure enough: stop at the number of packets
  limits.most_packets = static_cast<std::uint64_t>(packets);
  (void)engine.run_bandwidth(limits);
  return {static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC,
          static_cast<double>(engine.data_packets())};
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const auto model = load_model("cx6", "");
  if (!model) return 2;
  constexpr std::uint64_t kLarge = 8388608;
  std::vector<Point> points = {{1, 20, kLarge}};
  for (const std::uint32_t qps : {4U, 10U, 100U, 1000U, 10000U, 100000U}) {
    points.push_back({qps, 20, kLarge});
  }
  for (const double masks : {1.0, 100.0, 1000.0}) points.push_back({4, masks, kLarge});
  for (const std::uint32_t qps : {4U, 100000U}) {
    for (const std::uint64_t bytes : {65536ULL, 4096ULL}) {
      points.push_back({qps, 20, bytes});
    }
  }
  for (const std::uint32_t senders : {2U, 16U, 249U}) {
    for (const bool dcqcn : {false, true}) {
      points.push_back({16, 0, 65536, senders, dcqcn});
    }
  }
  if (argc > 2) points = {{static_cast<std::uint32_t>(std::atoi(argv[2])), 20, kLarge}};
  for (int round = 0; round < rounds; ++round) {
    for (Point& point : points) {
      const auto seed = static_cast<std::uint64_t>(round) + 1;
      const Cost once = run(model->parameters, point, kPackets, seed);
      const Cost twice = run(model->parameters, point, 2 * kPackets, seed);
      point.once = std::min(point.once, once.seconds);
      point.twice = std::min(point.twice, twice.seconds);
      point.packets = twice.packets - once.packets;
    }
  }
  const double base = points.front().packet_ns();
  constexpr const char* kHeader = "{:>8} {:>6} {:>10} {:>8} {:>6} {:>10} {:>8} {:>12} {:>12}\n";
  fmt::print(kHeader, "QPs", "masks", "message", "senders", "DCQCN", "ns", "of base", "Mpackets/s",
             "ns to set up");
  fmt::print(kHeader, "of each", "", "bytes", "", "", "a packet", "", "one core", "a QP");
  for (const Point& point : points) {
    const double ns = point.packet_ns();
    // The rest of two differences: with few QPs it drowns.
    const double noise_ns = kNoise * point.twice * 1e9 / (point.qps * point.senders);
    const std::string set_up =
        point.qp_ns() > noise_ns ? fmt::format("{:.0f}", point.qp_ns()) : "below noise";
    fmt::print("{:>8} {:>6} {:>10} {:>8} {:>6} {:>10.1f} {:>8.2f} {:>12.1f} {:>12}\n", point.qps,
               point.masks, point.message_bytes, point.senders, point.dcqcn ? "on" : "", ns,
               ns / base, 1e3 / ns, set_up);
  }
  return 0;
}
