// ScalaCN's grid on a twin: 461 settings of masks, three operations, bandwidth and latency, 2,766
// runs that took days on hardware. 441 settings are 0..20 local by 0..20 remote masks; how the
// other 20 were set was not published, here they are 1..20 masks at all four hops. Says how long it
// took, on the wall and of CPU, how many runs settled by MSER, and how sure they are.
//
// usage: scalacn_grid_bench [target] [message bytes]

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "greynic/twin/twin.h"

namespace {

using namespace greynic;

std::vector<target::MeasureRequest> grid(double message_bytes) {
  std::vector<target::MeasureRequest> requests;
  const auto add = [&](double client_encap, double server_decap, double way_back) {
    for (const char* operation : {"SEND", "WRITE", "READ"}) {
      target::MeasureRequest& request = requests.emplace_back();
      request.configuration.set("client_encap_masks", client_encap);
      request.configuration.set("server_decap_masks", server_decap);
      request.configuration.set("server_encap_masks", way_back);
      request.configuration.set("client_decap_masks", way_back);
      request.configuration.set("operation", operation);
      request.configuration.set("qp_count", 4.0);
      request.configuration.set("message_bytes", message_bytes);
      request.seed = requests.size();
    }
  };
  for (int local = 0; local <= 20; ++local) {
    for (int remote = 0; remote <= 20; ++remote) add(local, remote, 0);
  }
  for (int masks = 1; masks <= 20; ++masks) add(masks, masks, masks);
  return requests;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "twin:cx6?threads=2";
  const auto requests = grid(argc > 2 ? std::atof(argv[2]) : 65536);
  auto twin = twin::create(name);
  if (!twin) {
    fmt::print(stderr, "{}\n", twin.error().message);
    return 2;
  }
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  std::size_t settled = 0;
  double worst_bandwidth = 0;
  double worst_latency = 0;
  const auto relative = [](const Observation& seen, std::string_view measure) {
    const auto found = seen.measures.find(std::string(measure));
    if (found == seen.measures.end() || !found->second.standard_error) return 1.0;
    return *found->second.standard_error / found->second.value;
  };
  const auto done = (*twin)->measure(requests, [&](std::size_t i, const Observation& seen) {
    if (seen.steady && seen.steady->settled) {
      ++settled;
    } else {
      fmt::print("did not settle: {} {}\n", requests[i].configuration.name(), seen.reason);
    }
    worst_bandwidth = std::max(worst_bandwidth, relative(seen, measure::kBandwidth));
    worst_latency = std::max(worst_latency, relative(seen, measure::kLatencyMean));
    return true;
  });
  if (!done) return 2;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  fmt::print("{}: {} observations, {} runs, {:.1f} s on the wall, {:.1f} s of CPU\n", name,
             requests.size(), 2 * requests.size(), wall.count(),
             static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
  fmt::print(
      "settled {} of {}; largest relative standard error: bandwidth {:.2g}, latency {:.2g}\n",
      settled, requests.size(), worst_bandwidth, worst_latency);
  return settled == requests.size() ? 0 : 1;
}
