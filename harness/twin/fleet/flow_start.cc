#include "fleet/flow_start.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>

#include "greynic/statistics/random.h"

namespace greynic::twin {
namespace {

constexpr double kDayNs = 86400e9;

/// Entries of one line that wait until no flow waits for its own.
struct Later {
  double ready_ns = 0;
  double insert_ns = 0;
  double count = 0;
};

/// The driver: so many entries at once, a flow's own before others.
class Driver {
 public:
  explicit Driver(std::size_t slots) {
    for (std::size_t i = 0; i < slots; ++i) free_.push(0);
  }
  /// When the entry is in.
  double insert(double ready_ns, double insert_ns) {
    catch_up(ready_ns);
    const double done = std::max(take_slot(), ready_ns) + insert_ns;
    free_.push(done);
    return done;
  }
  void add_later(const Later& later) {
    if (later.count > 0) later_.push_back(later);
  }

 private:
  /// Puts in what waits as long as a slot is free before `until_ns`.
  void catch_up(double until_ns) {
    while (!later_.empty()) {
      Later& next = later_.front();
      const double start = std::max(free_.top(), next.ready_ns);
      if (start >= until_ns) return;
      take_slot();
      free_.push(start + next.insert_ns);
      if (--next.count <= 0) later_.pop_front();
    }
  }
  double take_slot() {
    const double at = free_.top();
    free_.pop();
    return at;
  }

  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
  std::deque<Later> later_;
};

}  // namespace

LatencyHistogram flow_start_delays(const Parameters& rnic, const SwitchParameters& s,
                                   const RnicRules& rules, const StartLoad& load,
                                   std::uint64_t seed) {
  LatencyHistogram delays;
  statistics::Random random(seed);
  Driver driver(static_cast<std::size_t>(std::max(1.0, s.insert_slot_count)));
  const double between_ns = kDayNs * load.burst_count / load.starts_per_day;
  const double core_ns = 1e3 / (rnic.slow_path_mpps * s.slow_path_core_count);
  const FlowNeeds plain{.until = 1, .groups_missed = rules.groups};
  double now = 0;
  double core_free = 0;
  std::vector<std::pair<double, const FlowNeeds*>> burst;  // when the switch has it, and what it is
  for (std::uint32_t started = 0; started < load.flows;) {
    now += random.exponential(between_ns);
    const auto size = std::min(load.flows - started, static_cast<std::uint32_t>(load.burst_count));
    burst.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      const FlowNeeds* needs = &plain;
      if (!rules.flows.empty()) {
        const auto drawn =
            std::ranges::upper_bound(rules.flows, random.uniform(), {}, &FlowNeeds::until);
        needs = drawn == rules.flows.end() ? &rules.flows.back() : &*drawn;
      }
      burst.emplace_back(now + needs->groups_missed * load.group_ns, needs);
    }
    std::ranges::stable_sort(burst, {}, [](const auto& flow) { return flow.first; });
    for (const auto& [arrives, needs] : burst) {
      core_free = std::max(core_free, arrives) + core_ns;
      double done = core_free + rnic.upcall_us * 1e3;
      if (!needs->software) {
        const double insert_ns =
            rnic.rule_insert_us * 1e3 * (1 + needs->group_rules / s.insert_doubling_count);
        done = driver.insert(done, insert_ns);
        driver.add_later({done, insert_ns, needs->other_entries});
      }
      delays.record(static_cast<std::uint64_t>(std::llround(done - now)));
    }
    started += size;
  }
  return delays;
}

}  // namespace greynic::twin
