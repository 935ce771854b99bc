/// Entries spent on matchers that compare ports as ranges.

#include <gtest/gtest.h>

#include <random>

#include "sized.h"
#include "src/spend/spend.h"

namespace greynic::optimizer {
namespace {

using chained::kNowhere;
using chained::Plan;
using chained::PlanEntry;
using chained::PlanMatcher;
using ranged::Spans;
using spend::Uniting;

constexpr std::uint32_t kPorts = 8;
constexpr Spans kAnyPort = {{{0, kPorts - 1}, {0, kPorts - 1}}};

PlanMatcher ranged_matcher(Word mask) {
  PlanMatcher matcher(&mask, 1);
  matcher.as_range = {true, true};
  return matcher;
}

void add(PlanMatcher& matcher, Word value, std::uint32_t unit, double weight, const Spans& spans) {
  matcher.values.add(&value);
  matcher.entries.push_back({unit, kNowhere, weight, spans});
}

bool has(const Spans& spans, std::uint32_t source, std::uint32_t destination) {
  return spans[0].low <= source && source <= spans[0].high && spans[1].low <= destination &&
         destination <= spans[1].high;
}

/// What the packet meets in a plan of one table; kNowhere for nothing. Adds what it tries.
std::uint32_t meets(const Plan& plan, Word bits, std::uint32_t source, std::uint32_t destination,
                    const std::vector<std::uint32_t>& effect, bool& two) {
  for (const PlanMatcher& matcher : plan[0].matchers) {
    std::uint32_t met = kNowhere;
    for (std::size_t i = 0; i < matcher.entries.size(); ++i) {
      const PlanEntry& entry = matcher.entries[i];
      if (matcher.values[i][0] != (bits & matcher.mask[0])) continue;
      if (!has(entry.spans, source, destination)) continue;
      two = two || (met != kNowhere && met != effect[entry.unit]);
      met = effect[entry.unit];
    }
    if (met != kNowhere) return met;
  }
  return kNowhere;
}

// Claim:  matchers that compare ports as ranges become one, the later giving way to the earlier, where there is
//         room for what it is written out to, and only then.
// Oracle: by hand: any port is two ranges beside port 3.
TEST(RangeSpend, WritesWhatGivesWayWithoutThePortsOfTheOther) {
  const auto left = [](std::size_t room) {
    PlanMatcher first = ranged_matcher(0x7);
    add(first, 5, 0, 0.1, {{kAnyPort[0], {3, 3}}});
    PlanMatcher second = ranged_matcher(0x7);
    add(second, 5, 1, 0.9, kAnyPort);
    Plan plan(1);
    plan.edit(0).matchers = {first, second};
    spend::spend(plan, room, {0, 1}, Uniting::kAny);
    return plan;
  };
  EXPECT_EQ(left(0)[0].matchers.size(), 2U);
  const Plan plan = left(1);
  ASSERT_EQ(plan[0].matchers.size(), 1U);
  EXPECT_EQ(entries_of(plan), 3U);
  EXPECT_NEAR(tried_in(plan), 1.0, 1e-9);
}

// Claim:  neighbouring ports of one unit become one entry.
// Oracle: by hand: ports 2 to 3 and 4 to 7, of two matchers as prefixes of two lengths are.
TEST(RangeSpend, MakesNeighboursOneEntry) {
  PlanMatcher first = ranged_matcher(0x7);
  add(first, 5, 0, 0.1, {{kAnyPort[0], {2, 3}}});
  PlanMatcher second = ranged_matcher(0x7);
  add(second, 5, 0, 0.9, {{kAnyPort[0], {4, 7}}});
  Plan plan(1);
  plan.edit(0).matchers = {first, second};
  spend::spend(plan, 0, {0, 1}, Uniting::kAny);
  ASSERT_EQ(plan[0].matchers.size(), 1U);
  ASSERT_EQ(entries_of(plan), 1U);
  EXPECT_EQ(plan[0].matchers[0].entries[0].spans, (Spans{{kAnyPort[0], {2, 7}}}));
}

// Claim:  whatever is spent, every packet meets a unit of the same effect as before, never two of one matcher that
//         differ, and no more entries are used than there is room for.
// Oracle: every packet, before and after.
TEST(RangeSpend, LeavesWhatPacketsMeet) {
  std::mt19937_64 random(11);
  std::size_t fewer = 0;
  for (std::size_t round = 0; round < sized(4'000, 500); ++round) {
    std::vector<std::uint32_t> effect(8);
    for (std::uint32_t& number : effect) number = static_cast<std::uint32_t>(random() % 3);
    Plan plan(1);
    for (std::size_t m = 2 + random() % 5; m > 0; --m) {
      PlanMatcher matcher = ranged_matcher(0xf << random() % 3 & 0xf);
      for (std::size_t i = 1 + random() % 5; i > 0; --i) {
        const auto span = [&]() -> ranged::Span {
          const auto low = static_cast<std::uint32_t>(random() % kPorts);
          if (random() % 3 == 0) return {0, kPorts - 1};
          return {low, low + static_cast<std::uint32_t>(random() % (kPorts - low))};
        };
        const Word value = random() & matcher.mask[0];
        const Spans spans = {span(), span()};
        bool free = true;
        for (std::size_t k = 0; k < matcher.entries.size(); ++k) {
          free =
              free && (matcher.values[k][0] != value || disjoint(matcher.entries[k].spans, spans));
        }
        const auto unit = static_cast<std::uint32_t>(random() % effect.size());
        if (free) add(matcher, value, unit, 0.01, spans);
      }
      plan.edit(0).matchers.push_back(std::move(matcher));
    }
    plan.edit(0).missing = 0.5;
    const Plan given = plan;
    const std::size_t room = random() % 30;
    spend::spend(plan, room, effect, Uniting::kAny);
    ASSERT_LE(entries_of(plan), entries_of(given) + room);
    fewer += given[0].matchers.size() - plan[0].matchers.size();
    for (Word bits = 0; bits < 16; ++bits) {
      for (std::uint32_t ports = 0; ports < kPorts * kPorts; ++ports) {
        bool two = false;
        const auto met = [&](const Plan& of) {
          return meets(of, bits, ports / kPorts, ports % kPorts, effect, two);
        };
        const std::uint32_t was = met(given);
        ASSERT_EQ(was, met(plan)) << "round " << round << ", bits " << bits << ", ports " << ports;
        ASSERT_FALSE(two) << "round " << round << ", bits " << bits << ", ports " << ports;
      }
    }
  }
  EXPECT_GT(fewer, sized(4'000, 500));
}

}  // namespace
}  // namespace greynic::optimizer
