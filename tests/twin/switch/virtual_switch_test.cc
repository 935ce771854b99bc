#include "switch/virtual_switch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "target/defects.h"

namespace greynic::twin {
namespace {

struct Bench {
  Parameters rnic = load_model("cx6", "").value().parameters;
  SwitchParameters s = load_switch("ovs").value().parameters;
  [[nodiscard]] SwitchReport run(const SwitchLoad& load, const SwitchFaults& faults) const {
    return run_switch(rnic, s, load, faults);
  }
};

// Claim:  a sound switch costs the measured traffic nothing, whatever goes on around it.
// Oracle: the neutral report.
// Method: 500 random loads over many orders of magnitude; the seed is printed.
TEST(VirtualSwitch, CostsTrafficNothingWithoutFaults) {
  const Bench bench;
  const unsigned seed = 20260301;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto any = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<>(std::log(low), std::log(high))(random));
  };
  for (int i = 0; i < 500; ++i) {
    const SwitchLoad load = {.flow_count = any(1, 1e9),
                             .flow_setup_rate = any(1, 1e7),
                             .counter_poll_ms = any(0.1, 1e6),
                             .flow_idle_ms = any(1, 1e7),
                             .rules_per_mask = any(1, 1e7),
                             .container_count = any(1, 1e6),
                             .vf_unbind_rate = any(0.1, 1e5),
                             .vxlan_contexts = any(1, 1e7)};
    const SwitchReport report = bench.run(load, {});
    EXPECT_EQ(report.outcome, Outcome::kMeasured) << report.reason;
    EXPECT_EQ(report.software_share, 0);
    EXPECT_EQ(report.frozen_share, 0);
    EXPECT_EQ(report.device_resets, 0);
    EXPECT_EQ(report.rule_delete_us, bench.rnic.rule_delete_us);
  }
}

// Claim:  flows that are deleted while alive are missing for as long as the driver needs to put
//         them back, once each time they are deleted.
// Oracle: by hand. Counters are never refreshed, so all flows go once each idle time and a sweep
//         sees it at once: with n flows and r inserts a ms, each is missing n / r / 2 on average.
TEST(VirtualSwitch, LosesLiveFlowsForAsLongAsTheirReturnTakes) {
  const Bench bench;
  const double per_ms = bench.s.insert_slot_count * 1e3 / bench.rnic.rule_insert_us /
                        (1 + 1 / bench.s.insert_doubling_count);
  for (const double flows : {1000.0, 10000.0, 60000.0}) {
    const SwitchReport report =
        bench.run({.flow_count = flows, .counter_poll_ms = 1e6, .flow_idle_ms = 1000},
                  {.late_counters = true});
    // The first to return goes 1000 ms after that, the last n / r later: a period is between.
    const double back_ms = flows / per_ms;
    EXPECT_GT(report.software_share, 0.8 * back_ms / 2 / (1000 + back_ms + bench.s.revalidator_ms));
    EXPECT_LT(report.software_share, 1.1 * back_ms / 2 / 1000);
  }
}

// Claim:  the kernel stands still for the share of the time in which the driver cannot keep up.
// Oracle: the queue fills for timeout * serve / (arrive - serve) and then stands for a timeout, so
//         the share is 1 - serve / arrive.
TEST(VirtualSwitch, FreezesForTheShareThatTheDriverCannotServe) {
  const Bench bench;
  const double serve = bench.s.insert_slot_count * 1e6 / bench.rnic.rule_insert_us /
                       (1 + 10000 / bench.s.insert_doubling_count);
  const SwitchReport report =
      bench.run({.flow_setup_rate = 100000, .rules_per_mask = 10000}, {.stalls_on_timeout = true});
  EXPECT_NEAR(report.frozen_share, 1 - serve / 100000, 0.01);
  EXPECT_GT(report.driver_timeouts, 0);
}

/// Of the number of containers: what each of them has, when the n-th busiest has 1/n of the first.
double harmonic(int containers) {
  double sum = 0;
  for (int i = 1; i <= containers; ++i) sum += 1.0 / i;
  return sum;
}

// Claim:  a driver that crashes on a failed creation goes down again and again: its flows are lost,
//         nothing is sent while it is probed, and half of what has come back is missing meanwhile.
// Oracle: by hand. 64 equal parts of the table; the busiest container's is full when limit / 64
//         x H(64) flows are back, at so many a ms. Then the probe.
TEST(VirtualSwitch, CrashesAgainAsSoonAsTheBusiestContainerIsBack) {
  const Bench bench;
  const SwitchReport report =
      bench.run({.flow_count = 131072, .container_count = 64}, {.crashes_on_failure = true});
  const double per_ms = bench.s.insert_slot_count * 1e3 / bench.rnic.rule_insert_us /
                        (1 + 1 / bench.s.insert_doubling_count);
  const double back = bench.rnic.flow_limit_count / 64 * harmonic(64);
  const double cycle_ms = back / per_ms + bench.s.device_probe_ms;
  EXPECT_EQ(report.outcome, Outcome::kMeasured);
  EXPECT_NEAR(report.frozen_share, bench.s.device_probe_ms / cycle_ms, 1e-6);
  EXPECT_NEAR(report.software_share, 1 - back / 2 / 131072, 1e-6);
  EXPECT_NEAR(report.device_resets, 1e3 / cycle_ms, 1e-9);
  EXPECT_NEAR(report.flows_lost, back * 1e3 / cycle_ms, 1e-3);
  EXPECT_NEAR(report.upcalls, report.flows_lost, 1e-6);
  EXPECT_EQ(report.driver_timeouts, 0);
}

// Claim:  the crash needs the fault, a second container, and a busiest one beyond its part.
// Oracle: flow counts just on either side of part x H(n), for several n.
TEST(VirtualSwitch, CrashesOnlyWhenTheBusiestContainerExceedsItsPart) {
  const Bench bench;
  for (const int containers : {2, 3, 64, 999}) {
    const double most = bench.rnic.flow_limit_count / containers * harmonic(containers);
    const auto resets = [&](double flows, double count, bool fault) {
      return bench
          .run({.flow_count = flows, .container_count = count}, {.crashes_on_failure = fault})
          .device_resets;
    };
    EXPECT_GT(resets(most * 1.001, containers, true), 0);
    EXPECT_EQ(resets(most * 0.999, containers, true), 0);
    EXPECT_EQ(resets(most * 1.001, containers, false), 0);
    EXPECT_EQ(resets(most * 1.001, 1, true), 0);
  }
}

// Claim:  a device whose contexts overflow answers no command and sends nothing until the driver's
//         time is up and it is probed anew; filling the buffer again is all it ever gets done.
// Oracle: by hand: fill, timeout, probe; each command slot times out once a cycle.
TEST(VirtualSwitch, HangsFromTheOverflowOfContextsToTheReset) {
  const Bench bench;
  const double per_ms = bench.s.insert_slot_count * 1e3 / bench.rnic.rule_insert_us /
                        (1 + 1 / bench.s.insert_doubling_count);
  const double limit = bench.rnic.encap_context_limit;
  const double fill_ms = limit / per_ms;
  const double cycle_ms = fill_ms + bench.rnic.driver_timeout_ms + bench.s.device_probe_ms;
  const SwitchReport report =
      bench.run({.vxlan_contexts = limit + 1}, {.unchecked_contexts = true});
  EXPECT_EQ(report.outcome, Outcome::kMeasured);
  EXPECT_NEAR(report.frozen_share, 1 - fill_ms / cycle_ms, 1e-6);
  EXPECT_NEAR(report.software_share, 1 - limit / 2 / (limit + 1), 1e-6);
  EXPECT_NEAR(report.driver_timeouts, bench.s.insert_slot_count * 1e3 / cycle_ms, 1e-9);
  EXPECT_NEAR(report.device_resets, 1e3 / cycle_ms, 1e-9);
  EXPECT_EQ(bench.run({.vxlan_contexts = limit}, {.unchecked_contexts = true}).device_resets, 0);
  EXPECT_EQ(bench.run({.vxlan_contexts = limit + 1}, {}).device_resets, 0);
}

// Claim:  two faults at once: traffic gets what one leaves of what the other leaves.
// Oracle: the reports of each alone.
TEST(VirtualSwitch, LeavesOfTwoOutagesWhatEachLeaves) {
  const Bench bench;
  const SwitchLoad load = {.flow_count = 131072, .flow_setup_rate = 200000, .container_count = 64};
  const double stalls = bench.run(load, {.stalls_on_timeout = true}).frozen_share;
  const double crashes = bench.run(load, {.crashes_on_failure = true}).frozen_share;
  ASSERT_GT(stalls, 0.01);
  ASSERT_GT(crashes, 0.01);
  const SwitchReport both =
      bench.run(load, {.stalls_on_timeout = true, .crashes_on_failure = true});
  EXPECT_NEAR(1 - both.frozen_share, (1 - stalls) * (1 - crashes), 1e-9);
}

// Claim:  counters are read as often as the RNIC's driver does, unless a configuration says so.
// Oracle: S1 shows where counters are older than flows may idle, and not where they are younger.
TEST(VirtualSwitch, ReadsCountersAsOftenAsTheDriverDoes) {
  Bench bench;
  const auto misjudged = [&](const char* more) {
    const Configuration c =
        parse_configuration(std::string("flow_count=65536,flow_idle_ms=1500") + more).value();
    return bench.run(switch_load(c, bench.rnic), {.late_counters = true}).software_share;
  };
  EXPECT_EQ(misjudged(""), 0);
  EXPECT_GT(misjudged(",counter_poll_ms=2000"), 0.01);
  bench.rnic.counter_refresh_ms = 2000;
  EXPECT_GT(misjudged(""), 0.01);
  EXPECT_EQ(misjudged(",counter_poll_ms=1000"), 0);
}

// Claim:  a parameter file of another kind, with a wrong name or a wrong value is refused.
TEST(VirtualSwitch, RefusesAnUnknownParameterFile) {
  EXPECT_FALSE(load_switch("cloud"));
  EXPECT_FALSE(load_switch("/no/such.json"));
}

}  // namespace
}  // namespace greynic::twin
