// Speed of the twin: simulated packets a second of CPU time on ScalaCN's workload, and how the cost
// of a packet grows with QPs and with masks. Prints one line a point; nothing is asserted.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "engine.h"

namespace {

using namespace greynic::twin;

/// Nanoseconds of CPU for one simulated packet: the best of three runs, since others use the
/// machine.
double cost_ns(const Parameters& parameters, std::uint32_t qps, double masks) {
  double best = 1e9;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Workload w;
    w.qp_count = qps;
    w.message_bytes = {8388608};
    w.signal_every = 1;
    w.send_depth = qps > 1000 ? 4 : 128;
    w.walk(greynic::Hop::kServerDecap).groups = masks;
    Engine engine(parameters, w, Effects{}, seed);
    RunLimits limits;
    limits.whole_duration = true;
    limits.duration = 2000000 / 11e6 * 1e9 * std::max(1.0, masks / 20);
    const std::clock_t began = std::clock();
    (void)engine.run_bandwidth(limits);
    const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    best = std::min(best, seconds * 1e9 / static_cast<double>(engine.data_packets()));
  }
  return best;
}

}  // namespace

int main() {
  const auto model = load_model("cx6", "");
  if (!model) return 2;
  const Parameters& p = model->parameters;
  const double base = cost_ns(p, 4, 20);
  std::printf("twin/packet/qps=4/masks=20 %.1f ns CPU, %.1f million packets/s\n", base, 1e3 / base);
  for (const std::uint32_t qps : {1U, 4U, 100U, 1000U, 10000U, 100000U}) {
    const double cost = cost_ns(p, qps, 20);
    std::printf("twin/packet/qps=%u/masks=20 %.1f ns, %.2f of base\n", qps, cost, cost / base);
  }
  for (const double masks : {1.0, 20.0, 100.0, 1000.0}) {
    const double cost = cost_ns(p, 4, masks);
    std::printf("twin/packet/qps=4/masks=%.0f %.1f ns, %.2f of base\n", masks, cost, cost / base);
  }
  return 0;
}
