#include "switch/virtual_switch.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace greynic::twin {
namespace {

constexpr double kShortestRunMs = 60e3;
constexpr double kIdleTimesInRun = 20;
constexpr double kLongestRunMs = 3600e3;

/// What an operation costs the driver.
struct Driver {
  const Parameters& rnic;
  const SwitchParameters& s;
  const SwitchLoad& load;
  const SwitchFaults& faults;

  /// Longer chains in a fuller group.
  [[nodiscard]] double insert_us() const {
    return rnic.rule_insert_us * (1 + load.rules_per_mask / s.insert_doubling_count) + group_us();
  }
  [[nodiscard]] double inserts_per_ms() const { return s.insert_slot_count * 1e3 / insert_us(); }
  [[nodiscard]] double delete_us() const {
    const bool searches = faults.slow_deletion && load.rules_per_mask > rnic.rule_delete_knee_count;
    return rnic.rule_delete_us * (searches ? s.search_slowdown : 1.0) + group_us();
  }
  /// A rule that has a group of its own comes and goes with it.
  [[nodiscard]] double group_us() const { return load.lone_rule_share * rnic.rule_group_us; }
};

/// The flows of the measured traffic: in hardware, or on their way back to it.
class LiveFlows {
 public:
  explicit LiveFlows(double count) : installed_count_(count) {
    if (count > 0) installed_.push_back({count, 0, 0});
  }

  /// Rules are inserted at `per_ms` from the last call until now.
  void advance(double now, double per_ms) {
    const double done = std::min(waiting_, per_ms * (now - now_));
    const double busy = done / per_ms;
    missing_area_ += (waiting_ + parked_) * (now - now_) - done * (now - now_) + done * busy / 2;
    if (done > 0) {
      installed_.push_back({done, now_, now_ + busy});
      installed_count_ += done;
      waiting_ -= done;
    }
    now_ = now;
  }
  /// Counters are read: every live flow is seen to be in use.
  void see() {
    installed_.clear();
    if (installed_count_ > 0) installed_.push_back({installed_count_, now_, now_});
  }
  /// Removes what was last seen in use at `deadline` or before; returns how many.
  double remove_unseen_since(double deadline) {
    double removed = 0;
    while (!installed_.empty() && installed_.front().first <= deadline) {
      Batch& batch = installed_.front();
      if (batch.last <= deadline) {
        removed += batch.count;
        installed_.pop_front();
        continue;
      }
      const double gone = batch.count * (deadline - batch.first) / (batch.last - batch.first);
      batch.count -= gone;
      batch.first = deadline;
      removed += gone;
      break;
    }
    installed_count_ -= removed;
    waiting_ += removed;
    return removed;
  }
  /// Moves up to `most` flows to software, where they stay until taken back.
  double park(double most) {
    double parked = 0;
    while (!installed_.empty() && parked < most) {
      Batch& batch = installed_.front();
      const double take = std::min(batch.count, most - parked);
      parked += take;
      batch.count -= take;
      if (batch.count <= 0) installed_.pop_front();
    }
    installed_count_ -= parked;
    parked_ += parked;
    return parked;
  }
  void take_back() {
    waiting_ += parked_;
    parked_ = 0;
  }
  [[nodiscard]] double missing_area() const { return missing_area_; }

 private:
  struct Batch {
    double count;
    double first, last;  ///< seen in use, spread evenly between these times
  };
  std::deque<Batch> installed_;  ///< in order of time
  double installed_count_ = 0;
  double waiting_ = 0;  ///< without a rule: all their packets go through software
  double parked_ = 0;
  double missing_area_ = 0;  ///< flows without a rule x ms
  double now_ = 0;
};

/// Revalidator, counter reader and rebalancer, each at its own period.
void sweep_flows(const Driver& driver, SwitchReport& report) {
  const SwitchLoad& load = driver.load;
  const SwitchParameters& s = driver.s;
  // No counters are read: flows age in hardware, which knows.
  if (load.counter_poll_ms <= 0) return;
  const bool misjudges = driver.faults.late_counters && load.counter_poll_ms >= load.flow_idle_ms;
  const bool demotes = driver.faults.stale_is_slow && load.flow_setup_rate > 0 &&
                       load.counter_poll_ms > s.rebalance_ms;
  if (!misjudges && !demotes) return;

  const double sweep_ms = std::min(s.revalidator_ms, load.flow_idle_ms);
  const double run_ms = std::max(kShortestRunMs, kIdleTimesInRun * load.flow_idle_ms);
  LiveFlows flows(load.flow_count);
  double next_read = load.counter_poll_ms;
  double next_sweep = sweep_ms;
  double next_balance = s.rebalance_ms;
  double last_read = 0;
  double last_balance = 0;
  double removed = 0;
  double moved = 0;
  for (double now = 0; now < run_ms;) {
    now = std::min({next_read, next_sweep, next_balance, run_ms});
    flows.advance(now, driver.inserts_per_ms());
    // A sweep that meets the reading of counters still sees the old ones.
    if (now == next_sweep) {
      if (misjudges) removed += flows.remove_unseen_since(now - load.flow_idle_ms);
      next_sweep += sweep_ms;
    }
    if (now == next_balance) {
      flows.take_back();  // software has counted them: they are fast after all
      const bool stale = last_read <= last_balance && now > s.rebalance_ms;
      if (demotes && stale) moved += flows.park(load.flow_setup_rate * s.rebalance_ms * 1e-3);
      last_balance = now;
      next_balance += s.rebalance_ms;
    }
    if (now == next_read) {
      flows.see();
      last_read = now;
      next_read += load.counter_poll_ms;
    }
  }
  report.software_share = std::min(1.0, flows.missing_area() / (load.flow_count * run_ms));
  report.upcalls += (removed + moved) / run_ms * 1e3;
  report.deletions += (removed + moved) / run_ms * 1e3;
}

/// New flows queue for the driver. A sound switch leaves what it cannot insert to software and goes
/// on. With the fault, who has waited for the driver's timeout holds the kernel's lock for as long
/// again, until the driver gives up; then the queue is dropped.
void set_up_flows(const Driver& driver, SwitchReport& report) {
  const double arrive = driver.load.flow_setup_rate * 1e-3;
  const double serve = driver.inserts_per_ms();
  report.upcalls += driver.load.flow_setup_rate;
  report.deletions += std::min(arrive, serve) * 1e3;  // each is removed when it is over
  if (!driver.faults.stalls_on_timeout || arrive <= serve) return;
  const double timeout = driver.rnic.driver_timeout_ms;
  double now = 0;
  double frozen = 0;
  double timeouts = 0;
  while (now < kLongestRunMs) {
    const double fills = timeout * serve / (arrive - serve);  // until the wait is the timeout
    if (now + fills >= kLongestRunMs) break;
    frozen += timeout;
    ++timeouts;
    now += fills + timeout;
  }
  report.frozen_share = timeouts > 0 ? frozen / now : 0.0;
  report.driver_timeouts = timeouts > 0 ? timeouts / now * 1e3 : 0.0;
  report.kernel_stalls = report.driver_timeouts;
}

/// When flows come faster than the driver inserts them, the switch turns offload off. A sound one
/// turns it on again as soon as the queue is empty, and leaves to software only what it cannot
/// insert; with the fault nobody does so until the device is reset.
void turn_offload_off(const Driver& driver, SwitchReport& report) {
  if (!driver.faults.offload_stays_off) return;
  const bool overloaded = driver.load.flow_setup_rate * 1e-3 > driver.inserts_per_ms();
  report.offload_is_off = driver.load.offload_is_off || overloaded;
  if (report.offload_is_off) report.software_share = 1.0;
}

/// A device that goes down, is probed anew, and fills up until it goes down again.
struct Cycle {
  double up_ms = 0;    ///< entries are put into the empty device, one after another
  double hung_ms = 0;  ///< nothing is sent, and nobody has noticed yet
  double held = 0;     ///< entries in the device when it goes down
  double wanted = 1;   ///< entries that the traffic needs
};

/// Adds what the cycle costs the traffic. Two troubles at once: each meets what the other leaves.
void go_through(const Cycle& cycle, const Driver& driver, SwitchReport& report) {
  const double up = std::max(cycle.up_ms, 1 / driver.inserts_per_ms());
  double now = 0;
  double frozen = 0;
  double missing = 0;  // share of entries x ms
  double resets = 0;
  while (now < kLongestRunMs) {
    missing += up * (1 - cycle.held / (2 * cycle.wanted));  // they come back evenly
    frozen += cycle.hung_ms + driver.s.device_probe_ms;
    now += up + cycle.hung_ms + driver.s.device_probe_ms;
    ++resets;
  }
  report.software_share = 1 - (1 - report.software_share) * (1 - missing / (now - frozen));
  report.frozen_share = 1 - (1 - report.frozen_share) * (1 - frozen / now);
  report.outage_ms = std::max(report.outage_ms, cycle.hung_ms + driver.s.device_probe_ms);
  report.device_resets += resets / now * 1e3;
  report.flows_lost += cycle.held * resets / now * 1e3;
  report.upcalls += cycle.held * resets / now * 1e3;
}

/// Containers get equal parts of the flow table, but not equal traffic: the n-th busiest has 1/n of
/// the busiest one's flows. When the part of the busiest is full, a creation fails. A sound driver
/// says so and the switch makes do with coarser rules. With the fault it frees what other VFs still
/// use, and crashes on their next use of it: all rules are gone, and nothing is sent until the
/// device is probed anew. Then flows come back, each container's in proportion, until the busiest
/// one's part is full again.
void create_flows(const Driver& driver, SwitchReport& report) {
  const double containers = driver.load.container_count;
  if (!driver.faults.crashes_on_failure || containers < 2) return;  // nobody to share objects with
  constexpr double kEuler = 0.5772156649015329;
  double harmonic = std::log(containers) + kEuler + 1 / (2 * containers);
  if (containers <= 1000) {
    harmonic = 0;
    for (int i = 1; i <= static_cast<int>(containers); ++i) harmonic += 1.0 / i;
  }
  const double part = driver.rnic.flow_limit_count / containers;
  if (driver.load.flow_count / harmonic <= part) return;
  const double held = part * harmonic;
  go_through(
      {.up_ms = held / driver.inserts_per_ms(), .held = held, .wanted = driver.load.flow_count},
      driver, report);
}

/// When a VF is unbound, the port of every other one is told, one after another. A sound driver
/// frees the VF's port when the last has heard; with the fault it waits for a fixed time.
void unbind_functions(const Driver& driver, SwitchReport& report) {
  if (!driver.faults.racy_unbind || driver.load.vf_unbind_rate <= 0) return;
  const double period = 1e3 / driver.load.vf_unbind_rate;
  const double work = (driver.load.container_count - 1) * driver.s.port_event_us * 1e-3;
  double free = 0;
  for (double now = period; now <= kShortestRunMs; now += period) {
    free = std::max(free, now) + work;
    if (free - now > driver.s.unbind_grace_ms) {
      report.outcome = Outcome::kFailed;
      report.reason = "IBV_EVENT_PORT_ERR: the link went down while a VF was unbound";
      return;
    }
    if (work <= period) return;  // the next finds nobody waiting: it goes as this one did
  }
}

/// A sound driver keeps what the buffer cannot hold in host memory. With the fault, firmware waits
/// for a place that traffic, which waits for firmware, never frees: nothing is sent and no command
/// is answered, until the driver gives up those that it has sent and resets the device. Then
/// contexts are created anew, until the buffer is full again. Where who waits for the driver holds
/// the kernel's lock (S2), the kernel stands still for as long again, and so does the reset.
void create_contexts(const Driver& driver, SwitchReport& report) {
  const double limit = driver.rnic.encap_context_limit;
  if (!driver.faults.unchecked_contexts || driver.load.vxlan_contexts <= limit) return;
  const double resets_before = report.device_resets;
  const bool stalls = driver.faults.stalls_on_timeout;
  go_through({.up_ms = limit / driver.inserts_per_ms(),
              .hung_ms = driver.rnic.driver_timeout_ms * (stalls ? 2 : 1),
              .held = limit,
              .wanted = driver.load.vxlan_contexts},
             driver, report);
  // Every command slot holds one that is never answered.
  const double times = report.device_resets - resets_before;
  report.driver_timeouts += driver.s.insert_slot_count * times;
  if (stalls) report.kernel_stalls += times;
}

}  // namespace

SwitchReport run_switch(const Parameters& rnic, const SwitchParameters& s, const SwitchLoad& load,
                        const SwitchFaults& faults) {
  const Driver driver{rnic, s, load, faults};
  SwitchReport report;
  report.rule_insert_us = rnic.rule_insert_us;
  report.rule_delete_us = rnic.rule_delete_us;
  unbind_functions(driver, report);
  if (report.outcome != Outcome::kMeasured) return report;
  set_up_flows(driver, report);
  sweep_flows(driver, report);
  create_flows(driver, report);
  create_contexts(driver, report);
  turn_offload_off(driver, report);
  if (report.deletions > 0) {
    report.rule_insert_us = driver.insert_us();
    report.rule_delete_us = driver.delete_us();
  }
  return report;
}

}  // namespace greynic::twin
