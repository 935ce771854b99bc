#include "traffic/quick_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace greynic::verbs {
namespace {

/// A machine whose counter and clock are made from one time, which the test moves on.
struct MadeUpMachine {
  double ns = 5e9;
  double counts_per_ns = 3.1;
  bool trusted = true;
  double cost_ns = 20;       ///< of reading either
  double next_pause_ns = 0;  ///< what the next reading loses besides: its processor
  std::uint64_t clock_reads = 0;

  double read() {
    ns += cost_ns + next_pause_ns;
    next_pause_ns = 0;
    return ns;
  }
};

struct MadeUpTime {
  MadeUpMachine* machine;
  [[nodiscard]] bool counter_is_trusted() const { return machine->trusted; }
  [[nodiscard]] std::uint64_t counter() const {
    return static_cast<std::uint64_t>(machine->read() * machine->counts_per_ns) + 987654321;
  }
  [[nodiscard]] std::int64_t clock_ns() const {
    ++machine->clock_reads;
    return static_cast<std::int64_t>(machine->read());
  }
};

// Claim:  the clock tells the kernel's time: any stretch of some milliseconds to 1e-4 and its
//         readings to 1e-4 of 64 ms, never backwards, while it asks the kernel less than once in a
//         hundred readings.
// Oracle: the time from which counter and clock of the made-up machine are both made.
// Method: 2 s of readings at random distances, at two rates of the counter; a thread that loses its
//         processor for 2 ms in the middle of some readings.
TEST(QuickClock, TellsTheKernelsTime) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (const double counts_per_ns : {0.024, 1.0, 3.1}) {
    SCOPED_TRACE(testing::Message() << counts_per_ns << " counts a ns");
    MadeUpMachine machine;
    machine.counts_per_ns = counts_per_ns;
    BasicQuickClock clock(MadeUpTime{&machine});
    std::int64_t last = 0;
    std::uint64_t readings = 0;
    double from = 0;
    std::int64_t told_from = 0;
    for (const double end = machine.ns + 2e9; machine.ns < end; ++readings) {
      machine.ns += static_cast<double>(random() % 40'000);
      if (random() % 4096 == 0) machine.next_pause_ns = 2e6;
      const double before = machine.ns;
      const std::int64_t told = clock.now_ns();
      ASSERT_GE(told, last);
      last = told;
      constexpr double kOffNs = 6400;
      ASSERT_GT(static_cast<double>(told), before - kOffNs);
      ASSERT_LT(static_cast<double>(told), machine.ns + kOffNs);
      if (machine.ns - before > 1000) continue;  // where in a pause the reading was is not known
      if (from == 0) {
        from = machine.ns;
        told_from = told;
      } else if (machine.ns - from > 5e6) {
        // The first rate is found in 1 ms, from readings that take 60 ns.
        ASSERT_NEAR(static_cast<double>(told - told_from), machine.ns - from,
                    1e-4 * (machine.ns - from) + 100);
        from = machine.ns;
        told_from = told;
      }
    }
    EXPECT_GT(readings, 50'000U);
    EXPECT_LT(machine.clock_reads, readings / 100);
  }
}

// Claim:  where the kernel does not trust the counter, every reading is the kernel's.
// Oracle: the made-up machine's time and its count of readings.
TEST(QuickClock, AsksTheKernelWhereTheCounterIsNotTrusted) {
  MadeUpMachine machine;
  machine.trusted = false;
  BasicQuickClock clock(MadeUpTime{&machine});
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    machine.ns += 12'345;
    const double before = machine.ns;
    const std::int64_t told = clock.now_ns();
    EXPECT_GE(static_cast<double>(told), before);
    EXPECT_LE(static_cast<double>(told), machine.ns);
    EXPECT_EQ(machine.clock_reads, i);
  }
}

// Claim:  on this machine too it is the kernel's clock, whether by the counter or not.
// Oracle: CLOCK_MONOTONIC read before and after.
// Method: 30 ms of readings; between two of the kernel's, which may lie as far apart as they like.
TEST(QuickClock, AgreesWithThisMachine) {
  QuickClock clock;
  const std::int64_t begin = now_ns();
  std::int64_t last = 0;
  for (std::int64_t after = begin; after < begin + 30'000'000;) {
    const std::int64_t before = now_ns();
    const std::int64_t told = clock.now_ns();
    after = now_ns();
    ASSERT_GE(told, last);
    ASSERT_GE(told, before - 5000);
    ASSERT_LE(told, after + 5000);
    last = told;
  }
}

}  // namespace
}  // namespace greynic::verbs
