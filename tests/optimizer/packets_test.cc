/// Layouts of real rule sets, packet by packet.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "nightly.h"

namespace greynic::optimizer {
namespace {

/// A packet that the rule matches; bits that it does not look at are drawn. Half of the packets also
/// match as much of another rule as the first one leaves open: there precedence decides.
Packet packet_of(const RuleSet& rules, std::mt19937_64& random) {
  const FlowRule& rule = rules.rules[random() % rules.rules.size()];
  const FlowRule& other = rules.rules[random() % rules.rules.size()];
  const bool both = random() % 2 == 0;
  Packet packet;
  for (const MatchFieldInfo& row : match_fields()) {
    U128 value = (U128{random()} << 64 | U128{random()}) & full_mask(row.field);
    for (const FlowRule* from : {both ? &other : &rule, &rule}) {
      for (const FieldMatch& part : from->match.fields()) {
        if (part.field == row.field) value = (value & ~part.bits) | part.value;
      }
    }
    packet.set(row.field, value);
  }
  return packet;
}

class RealPackets : public testing::TestWithParam<const char*> {};

// Claim:  every packet of a real set gets the actions of before, whatever search made the layout.
// Oracle: core's lookups, which try one rule after another; neither search nor verifier uses them.
// Method: 4,000 packets of rules and of pairs of rules, for two budgets of rules.
TEST_P(RealPackets, GetTheActionsOfBefore) {
  const std::string path = std::string(GREYNIC_SOURCE_DIR) + "/../shared/data/rules/classbench/" +
                           GetParam() + ".rules.xz";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path
                 << " is not there; put the published data into ../shared/data, beside the source "
                    "tree";
  }
  if (waits_for_night(GetParam())) GTEST_SKIP() << "set GREYNIC_NIGHTLY for 10,000 rules";
  const auto rules = rules::read_rules(path);
  ASSERT_TRUE(rules) << rules.error().message;
  for (const double growth : {1.2, 2.0}) {
    OptimizeOptions options;
    options.max_growth = growth;
    const auto made = optimize(*rules, rules::uniform_traffic(*rules, 1), options);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(made->notes.empty()) << made->notes.front();
    std::mt19937_64 random(5);
    int hits = 0;
    for (int i = 0; i < 4000; ++i) {
      const Packet packet = packet_of(*rules, random);
      const FlowRule* const wanted = look_up(*rules, 0, packet);
      const FlowRule* got = look_up(made->layout, packet).rule;
      // Who jumped to a table and found nothing there has met no rule of the set.
      if (got != nullptr && !got->actions.empty() &&
          got->actions.back().kind == ActionKind::kJump) {
        got = nullptr;
      }
      ASSERT_EQ(wanted == nullptr, got == nullptr) << "packet " << i;
      if (wanted != nullptr) ASSERT_EQ(wanted->actions, got->actions) << "packet " << i;
      hits += wanted != nullptr ? 1 : 0;
    }
    EXPECT_GT(hits, 3900) << "the packets are not those of the rules";
  }
}

INSTANTIATE_TEST_SUITE_P(ClassBench, RealPackets,
                         testing::Values("acl3_1k", "acl5_1k", "fw1_1k", "ipc1_1k", "acl3_10k",
                                         "acl5_10k", "ipc1_10k", "ipc2_10k"));

}  // namespace
}  // namespace greynic::optimizer
