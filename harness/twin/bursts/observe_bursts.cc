#include <algorithm>
#include <cmath>

#include "greynic/twin/bursts.h"
#include "target/measurement.h"

/// Bursts as measures of an observation: the senders of a configuration on a fabric.

namespace greynic::twin {
namespace {

constexpr std::uint32_t kMostStreams = 1024;
constexpr std::size_t kMostFabricMessages = 400'000;
constexpr Time kLongestBurstRun = 500e3;

/// Everybody writes to host 0 all the time: as many messages as its queues hold, and the next one
/// when one is complete.
BurstWorkload closed_loop(const Settings& settings, const HostLoad& load,
                          const target::MeasureRequest& request) {
  BurstWorkload workload;
  FabricSpec& fabric = workload.fabric;
  fabric.host_count = load.sender_count + 1;
  fabric.host.rnic = settings.model.id;
  fabric.host.profile = settings.model.profile;
  fabric.host.overlay = load.overlay ? HostSpec::Overlay::kOn : HostSpec::Overlay::kOff;
  fabric.host.encap_groups = request.configuration.number("client_encap_masks");
  fabric.host.decap_groups = request.configuration.number("client_decap_masks");
  fabric.host.thread_count = load.thread_count;
  HostSpec server = fabric.host;
  server.encap_groups = request.configuration.number("server_encap_masks");
  server.decap_groups = request.configuration.number("server_decap_masks");
  server.link_gbps = load.server_link_gbps;
  fabric.others[0] = server;
  fabric.pfc = load.pfc;
  fabric.dcqcn = load.dcqcn;
  fabric.loss = load.loss;
  fabric.seed = request.seed;
  workload.mtu_bytes = load.mtu_bytes;
  workload.send_depth = std::max(1U, load.send_depth);
  workload.duration = std::min(static_cast<Time>(request.duration.count()), kLongestBurstRun);
  double mean = 0;
  for (const std::uint64_t bytes : load.message_bytes) mean += static_cast<double>(bytes);
  mean /= static_cast<double>(load.message_bytes.size());
  const double streams = static_cast<double>(load.sender_count) * load.qp_count;
  const double fit = settings.model.parameters.link_rate_gbps * workload.duration / 8 / mean;
  const auto each = static_cast<std::size_t>(std::ceil(2 * fit / streams)) + 1;
  const std::size_t count = std::min<std::size_t>(
      each, static_cast<std::size_t>(static_cast<double>(kMostFabricMessages) / streams) + 1);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::uint32_t qp = 0; qp < load.qp_count; ++qp) {
      for (HostId sender = 1; sender <= load.sender_count; ++sender) {
        workload.messages.push_back(
            {0, sender, 0, qp, load.message_bytes[i % load.message_bytes.size()]});
      }
    }
  }
  return workload;
}

/// The time within which 99 % of the bursts ended, exactly; 0 of no bursts.
double p99_us(const std::vector<burst::Burst>& bursts) {
  if (bursts.empty()) return 0.0;
  std::vector<std::uint64_t> all;
  for (const burst::Burst& burst : bursts) all.push_back(burst.end_ns - burst.start_ns);
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(all.size())));
  const std::size_t place = std::min(all.size(), std::max<std::size_t>(rank, 1)) - 1;
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(place));
  return static_cast<double>(all[place]) * 1e-3;
}

}  // namespace

void observe_bursts(const Settings& settings, const HostLoad& load,
                    const target::MeasureRequest& request, Observation& observation) {
  // Elsewhere the queue in front of the server holds requests alone, or the packets of no fabric.
  if (load.operation == Operation::kRead || load.transport == Transport::kUD ||
      load.sender_count * load.qp_count > kMostStreams) {
    return;
  }
  BurstWatchOptions options;
  options.allowance = {.rtt = settings.burst_delay, .share_e8 = 100'000'000};
  options.ports = {{.device = 0, .port = 0}};
  const auto findings = watch_bursts(closed_loop(settings, load, request), options);
  if (!findings) return;
  observation.measures["burst_count"] = {static_cast<double>(findings->bursts.size()), {}};
  observation.measures["burst_p99_us"] = {p99_us(findings->bursts), {}};
  observation.measures["victim_share"] = {findings->tally.victim_share(), {}};
}

}  // namespace greynic::twin
