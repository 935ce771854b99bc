// The example of docs/twin/embedding.md: opens a twin, finds where masks begin to cost bandwidth,
// and watches counters while traffic runs. Compiled and run as a test.

#include <cstdio>

#include "greynic/twin/twin.h"

int main() {
  auto twin = greynic::twin::create("twin:cx6?threads=1");
  if (!twin) {
    std::fprintf(stderr, "%s\n", twin.error().message.c_str());
    return 2;
  }

  double full = 0;
  double first_wall = -1;
  for (const double masks : {0.0, 5.0, 10.0, 20.0, 40.0}) {
    greynic::target::MeasureRequest request;
    request.configuration = {{"qp_count", 4.0},
                             {"message_bytes", 65536.0},
                             {"operation", std::string("WRITE")},
                             {"server_decap_masks", masks}};
    request.seed = 7;
    const auto seen = greynic::target::measure_one(**twin, request);
    if (!seen || seen->outcome != greynic::Outcome::kMeasured) return 1;
    const double gbps = *seen->value(greynic::measure::kBandwidth);
    std::printf("%3.0f masks: %6.1f Gbit/s, %5.2f us\n", masks, gbps,
                *seen->value(greynic::measure::kLatencyP50));
    if (masks == 0) full = gbps;
    if (first_wall < 0 && gbps < 0.8 * full) first_wall = masks;
  }
  std::printf("a fifth of the bandwidth is lost at %.0f masks\n", first_wall);

  int snapshots = 0;
  (*twin)->set_counter_sink([&](const greynic::twin::CounterSnapshot& snapshot) {
    snapshots += !snapshot.counters.empty();
  });
  greynic::target::MeasureRequest watched;
  watched.configuration = {{"qp_count", 4.0}, {"counter_poll_ms", 1.0}};
  watched.duration = std::chrono::milliseconds(5);
  if (!greynic::target::measure_one(**twin, watched)) return 1;
  std::printf("%d counter snapshots until the rate was steady\n", snapshots);
  return first_wall > 0 && snapshots >= 1 ? 0 : 1;
}
