#include "virtual_switch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

// Claim:  a parameter file of another kind, with a wrong name or a wrong value is refused.
TEST(VirtualSwitch, RefusesAnUnknownParameterFile) {
  EXPECT_FALSE(load_switch("cloud"));
  EXPECT_FALSE(load_switch("/no/such.json"));
}

}  // namespace
}  // namespace greynic::twin
