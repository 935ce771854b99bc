#include "ovs/packet_cost.h"

#include <span>
#include <thread>
#include <vector>

#include "greynic/statistics/halves.h"
#include "greynic/statistics/mean.h"
#include "greynic/target/interrupt.h"

namespace greynic::flows {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindows = 10;
/// Windows shorter than this would be coarse: the kernel brings a thread's CPU time up to date once
/// a timer tick, 1 to 10 ms.
constexpr std::chrono::milliseconds kShortestWindow{20};
constexpr std::chrono::milliseconds kWarmupStep{50};
constexpr std::chrono::seconds kLongestWarmup{10};
constexpr std::chrono::seconds kLongestStarvation{5};
/// A thread that upcalls do not disturb has settled when its halves agree so closely.
constexpr statistics::HalvesAllowance kSettled{.share = 0.02, .standard_errors = 3.0};

struct Instant {
  std::uint64_t cpu_ns = 0;
  std::uint64_t waiting_ns = 0;
  Clock::time_point wall;
  PmdStats stats;
};

Result<Instant> now(PrivateSwitch& ovs) {
  Instant instant;
  auto text = ovs.ask("dpif-netdev/pmd-stats-show");
  if (!text) return pass_on(text);
  auto cpu = ovs.packet_thread_time();
  if (!cpu) return pass_on(cpu);
  instant.wall = Clock::now();
  auto stats = parse_pmd_stats(*text);
  if (!stats) return pass_on(stats);
  instant.cpu_ns = cpu->on_cpu_ns;
  instant.waiting_ns = cpu->waiting_ns;
  instant.stats = *stats;
  return instant;
}

/// Two steps in a row without a miss: every flow has its megaflow.
Result<double> warm_up(PrivateSwitch& ovs, const Warmup& least) {
  const auto start = Clock::now();
  auto first = now(ovs);
  if (!first) return pass_on(first);
  const double enough = first->stats.packets + least.packets;
  double misses = -1.0;
  int quiet = 0;
  while (true) {
    std::this_thread::sleep_for(kWarmupStep);
    if (target::interrupted()) return fail(ErrorCode::kInterrupted, "stopped");
    auto instant = now(ovs);
    if (!instant) return pass_on(instant);
    const bool moving = instant->stats.packets > 0;
    quiet = moving && instant->stats.misses == misses ? quiet + 1 : 0;
    misses = instant->stats.misses;
    const auto spent = Clock::now() - start;
    const bool filled = instant->stats.packets >= enough;
    if (quiet >= 2 && filled && spent >= least.time)
      return std::chrono::duration<double>(spent).count();
    if (spent > kLongestWarmup) {
      return fail(ErrorCode::kRefused,
                  !moving  ? "no packet reaches the switch"
                  : filled ? "packets keep missing the megaflows: there are more of them than the "
                             "switch keeps"
                           : "too few packets came to fill the caches: the machine is too busy");
    }
  }
}

/// The first instant of the timed part. The packet thread clears its counters itself, some time
/// after it was told to.
Result<Instant> start_afresh(PrivateSwitch& ovs) {
  auto old = now(ovs);
  if (!old) return old;
  if (auto cleared = ovs.ask("dpif-netdev/pmd-stats-clear"); !cleared) return pass_on(cleared);
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (true) {
    auto instant = now(ovs);
    if (!instant || instant->stats.packets < old->stats.packets) return instant;
    if (Clock::now() > deadline) return fail(ErrorCode::kRefused, "the counters are not cleared");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// The end of a window in which packets were handled. On a crowded machine the thread may not get a
/// CPU for a while; its cost does not depend on that, so the window waits.
Result<Instant> next_window(PrivateSwitch& ovs, const Instant& before,
                            std::chrono::nanoseconds window) {
  const auto deadline = Clock::now() + window + kLongestStarvation;
  while (true) {
    std::this_thread::sleep_for(window);
    if (target::interrupted()) return fail(ErrorCode::kInterrupted, "stopped");
    auto after = now(ovs);
    const bool moved = after && after->stats.packets > before.stats.packets;
    if (!after || moved) return after;
    if (Clock::now() > deadline) return fail(ErrorCode::kRefused, "packets ceased to arrive");
  }
}

}  // namespace

Result<PacketTimes> time_packets(PrivateSwitch& ovs, std::chrono::nanoseconds duration,
                                 const Warmup& least) {
  auto warmup = warm_up(ovs, least);
  if (!warmup) return pass_on(warmup);
  if (auto as_usual = ovs.learn_quickly(false); !as_usual) return pass_on(as_usual);
  auto first = start_afresh(ovs);
  if (!first) return pass_on(first);
  const auto window = std::max<std::chrono::nanoseconds>(kShortestWindow, duration / kWindows);
  std::vector<double> costs;
  Instant before = *first;
  for (int i = 0; i < kWindows; ++i) {
    auto after = next_window(ovs, before, window);
    if (!after) return pass_on(after);
    const double packets = after->stats.packets - before.stats.packets;
    costs.push_back(static_cast<double>(after->cpu_ns - before.cpu_ns) / packets);
    before = *after;
  }
  PacketTimes times;
  times.packets = before.stats.packets - first->stats.packets;
  times.wall_seconds = std::chrono::duration<double>(before.wall - first->wall).count();
  // The ratio of the sums: what the tick steals from one window it gives to the next.
  times.cost_ns = {static_cast<double>(before.cpu_ns - first->cpu_ns) / times.packets,
                   statistics::mean_of(costs).standard_error};
  // The switch counts by the time stamp counter, which runs on while the thread waits for its CPU.
  const auto on_cpu = static_cast<double>(before.cpu_ns - first->cpu_ns);
  const auto waiting = static_cast<double>(before.waiting_ns - first->waiting_ns);
  times.cost_cycles = before.stats.processing_cycles / std::max(1.0, before.stats.packets) *
                      on_cpu / std::max(1.0, on_cpu + waiting);
  times.stats = before.stats;
  const std::span<const double> windows = costs;
  const bool settled =
      statistics::halves_agree(statistics::average(windows.first(kWindows / 2)),
                               statistics::average(windows.last(kWindows / 2)), times.cost_ns.value,
                               *times.cost_ns.standard_error, kSettled);
  times.steady = {settled, *warmup / (*warmup + times.wall_seconds), "halves of 10 windows"};
  return times;
}

}  // namespace greynic::flows
