#include <gtest/gtest.h>

#include <random>

#include "engine/engine.h"
#include "greynic/twin/twin.h"
#include "switch/layout_walk.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 52;

Observation measured(const std::string& target, const std::string& settings) {
  auto twin = create(target);
  EXPECT_TRUE(twin) << twin.error().message;
  target::MeasureRequest request;
  request.configuration = parse_configuration(settings).value();
  request.seed = kSeed;
  return target::measure_one(**twin, request).value();
}

HostLoad small_writes(std::uint64_t flows) {
  HostLoad w;
  w.operation = Operation::kWrite;
  w.qp_count = w.thread_count = 8;
  w.message_bytes = {1024};
  w.flow_count = flows;
  return w;
}

// Claim:  flow rules that are not on chip are read when a packet needs them, at both ends.
// Oracle: of N flows used alike, a cache of C with random victims holds C / N; each miss takes
//         context_fetch_ns of a message's way.
// Method: 1 KiB WRITE, 200,000 messages, 2 and 4 times as many flows as the cache holds; the means
//         of ping-pongs with and without.
TEST(SteeringCache, MissesTheFlowsThatItCannotHold) {
  const Parameters p = load_model("cx6", "")->parameters;
  const auto half_trip = [&](std::uint64_t flows) {
    Engine engine(p, small_writes(flows), Effects{}, kSeed);
    return engine.run_latency(RunLimits{.target_error = -1}, 4000).mean_ns;
  };
  const double alone = half_trip(1);
  for (const double share : {0.5, 0.25}) {
    const auto flows = static_cast<std::uint64_t>(p.steering_cache_entry_count / share);
    Engine engine(p, small_writes(flows), Effects{}, kSeed);
    (void)engine.run_bandwidth(RunLimits{.most_packets = 200000, .target_error = -1});
    for (const std::size_t side : {0U, 1U}) {
      const auto misses = static_cast<double>(engine.counters(side).steering_misses);
      EXPECT_NEAR(misses / static_cast<double>(engine.data_packets()), 1 - share, 0.01)
          << "side " << side << ", seed " << kSeed;
    }
    const double fetches = 2 * (1 - share) * p.context_fetch_ns;
    EXPECT_NEAR(half_trip(flows) - alone, fetches, 0.05 * fetches);
  }
}

// Claim:  flows that fit cost nothing.
// Oracle: the same run with one flow, number by number.
TEST(SteeringCache, CostsNothingWhereAllFlowsFit) {
  const Observation one = measured("twin:cx6", "message_bytes=1024,qp_count=4");
  const Observation many = measured("twin:cx6", "message_bytes=1024,qp_count=4,flow_count=65536");
  EXPECT_EQ(one.measures, many.measures);
  EXPECT_EQ(many.counters_after.at("steering_cache_miss"), 0);
}

// Claim:  deregistering a memory region makes the RNIC forget its translations, and traffic reads
//         them again.
// Oracle: a page is touched tau times a second and forgotten delta times, both at random: a touch
//         finds it gone with probability delta / (delta + tau).
// Method: WRITE of 64 bytes to 64 regions of 16 pages, all of which fit on chip, 5,000 and
//         100,000 deregistrations a second.
TEST(ControlVerbs, DeregisteringForgetsTranslations) {
  HostLoad w = small_writes(1);
  w.message_bytes = {64};
  w.mr_count = 64;
  w.mr_bytes = 65536;
  for (const double rate : {0.0, 5000.0, 100000.0}) {
    w.mr_churn_rate = rate;
    Engine engine(load_model("cx6", "")->parameters, w, Effects{}, kSeed);
    (void)engine.run_bandwidth(RunLimits{.most_packets = 400000, .target_error = -1});
    const auto handled = static_cast<double>(engine.data_packets());
    const double tau = handled / (engine.now() * 1e-9) / (64 * 16);
    const double delta = rate / 64;
    const double expected = handled * delta / (delta + tau);
    const auto misses = static_cast<double>(engine.counters(0).translation_misses);
    // A verb takes 16 pages at once, so misses come in sixteens.
    EXPECT_NEAR(misses, expected, 0.05 * expected + 3 * std::sqrt(16 * expected))
        << rate << ", seed " << kSeed;
  }
}

// Claim:  a region that is registered anew all the time costs a READ the walk of its translation.
// Oracle: with one page of one region, deregistered far more often than it is read, each touch
//         misses: at the requester and at the responder, pcie_read_latency_ns each.
TEST(ControlVerbs, DeregisteringSlowsReadsDown) {
  const auto trip = [](double rate) {
    HostLoad w = small_writes(1);
    w.operation = Operation::kRead;
    w.mr_bytes = 4096;
    w.mr_churn_rate = rate;
    Engine engine(load_model("cx6", "")->parameters, w, Effects{}, kSeed);
    return engine.run_latency(RunLimits{.target_error = -1}, 2000).mean_ns;
  };
  const double latency = load_model("cx6", "")->parameters.pcie_read_latency_ns;
  EXPECT_NEAR(trip(1e7) - trip(0), 2 * latency, 0.05 * latency);
}

/// A layout as the driver and the switch make it, group by group: for core's reference lookup.
Layout as_groups(const Layout& layout, const Grouping& grouping) {
  Layout out;
  for (const LayoutTable& table : layout.tables) {
    LayoutTable made{.id = table.id};
    std::size_t exact = table.matchers.size();
    for (std::size_t m = 0; grouping.exact_first && m < table.matchers.size(); ++m) {
      // In these layouts the exact group is the one that fixes both ports whole.
      const Mask& mask = table.matchers[m].mask;
      if (mask.bits(MatchField::kL4SrcPort) == 0xffff &&
          mask.bits(MatchField::kL4DstPort) == 0xffff) {
        exact = m;
        made.matchers.push_back(table.matchers[m]);
      }
    }
    for (std::size_t m = 0; m < table.matchers.size(); ++m) {
      if (m == exact) continue;
      if (!grouping.large_groups || static_cast<double>(m) < *grouping.large_groups) {
        made.matchers.push_back(table.matchers[m]);
        continue;
      }
      for (const FlowRule& rule : table.matchers[m].rules) {
        made.matchers.push_back({.mask = table.matchers[m].mask, .rules = {rule}});
      }
    }
    out.tables.push_back(std::move(made));
  }
  return out;
}

// Claim:  groups are counted as the driver makes them and as the switch walks them.
// Oracle: core's reference lookup in the layout written out group by group.
// Method: 200 random layouts of two tables, 1 to 12 masks over two ports, 1 to 5 rules each; random
//         packets; all four kinds of grouping. Where an exact rule hides behind another, moving its
//         group changes who decides: such packets are left to the switch's priorities, not judged.
TEST(Grouping, CountsGroupsAsTheReferenceLookupDoes) {
  std::mt19937_64 random(kSeed);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  int judged = 0, exact_hits = 0;
  for (int i = 0; i < 200; ++i) {
    Layout layout;
    for (std::uint32_t id = 0; id < 2; ++id) {
      LayoutTable table{.id = id};
      const auto masks = 1 + below(12);
      for (std::uint64_t m = 0; m < masks; ++m) {
        const bool exact = below(6) == 0;
        const std::uint64_t source = exact ? 0xffff : below(8);
        const std::uint64_t target = exact ? 0xffff : 1 + below(7);
        Matcher matcher;
        for (std::uint64_t r = 0; r < 1 + below(5); ++r) {
          FlowRule rule;
          rule.match.set(MatchField::kL4SrcPort, below(8) & source, source);
          rule.match.set(MatchField::kL4DstPort, below(8) & target, target);
          rule.actions = {id == 0 && below(2) == 0 ? Action::jump(1) : Action::drop()};
          matcher.mask = rule.match.mask();
          matcher.rules.push_back(rule);
        }
        const bool seen = std::ranges::any_of(
            table.matchers, [&](const Matcher& other) { return other.mask == matcher.mask; });
        if (!seen) table.matchers.push_back(matcher);
      }
      layout.tables.push_back(table);
    }
    for (int n = 0; n < 50; ++n) {
      Packet packet;
      packet.set(MatchField::kL4SrcPort, below(8));
      packet.set(MatchField::kL4DstPort, below(8));
      for (const bool first : {false, true}) {
        for (const std::optional<double> large : {std::optional<double>(), std::optional(3.0)}) {
          const Grouping grouping{.large_groups = large, .exact_first = first};
          const Layout made = as_groups(layout, grouping);
          const auto decided_alike = [&](std::uint32_t table) {
            const Layout one{{layout.tables[table]}};
            const Layout other{{made.tables[table]}};
            const FlowRule* plain = look_up(one, packet, table).rule;
            const FlowRule* moved = look_up(other, packet, table).rule;
            return plain == moved || (plain != nullptr && moved != nullptr && *plain == *moved);
          };
          const std::uint32_t entry = n % 5 == 0 ? 1 : 0;
          const Lookup plain = look_up(layout, packet, entry);
          const Lookup moved = look_up(made, packet, entry);
          const bool same = decided_alike(0) && decided_alike(1);
          if (!same) continue;
          ++judged;
          exact_hits += first && moved.matchers_tried == 1 && plain.matchers_tried > 1 ? 1 : 0;
          EXPECT_EQ(groups_tried(layout, packet, grouping, entry), moved.matchers_tried)
              << "layout " << i << ", exact first " << first << ", large groups "
              << large.value_or(0) << ", seed " << kSeed;
        }
      }
    }
  }
  EXPECT_GT(judged, 30000);
  EXPECT_GT(exact_hits, 20);
}

// Claim:  flows of a traffic enter where it says, so a pipeline's packets are checked as in the table that they come to.
// Oracle: by hand: one flow is the third of table 7's three masks, one the first of table 0's only one.
TEST(LayoutWalk, BeginsWhereFlowsEnter) {
  Layout layout;
  for (const auto& [id, masks] : {std::pair(0U, 1U), std::pair(7U, 3U)}) {
    LayoutTable table{.id = id};
    for (std::uint64_t m = 1; m <= masks; ++m) {
      FlowRule rule;
      rule.match.set(MatchField::kL4DstPort, m, 0xf);
      rule.match.set(MatchField::kL4SrcPort, 0, m);
      rule.actions = {Action::drop()};
      Matcher matcher;
      matcher.mask = rule.match.mask();
      matcher.rules.push_back(std::move(rule));
      table.matchers.push_back(std::move(matcher));
    }
    layout.tables.push_back(std::move(table));
  }
  Traffic traffic;
  for (const auto& [port, table] : {std::pair(3U, 7U), std::pair(1U, 0U)}) {
    Packet packet;
    packet.set(MatchField::kL4DstPort, port);
    traffic.flows.push_back({packet, 1.0, table});
  }
  const GroupWalk walk = walk_of(layout, &traffic, {});
  EXPECT_EQ(walk.share_groups, (std::vector<double>{1, 3}));
}

// Claim:  what a rule writes before its jump is what the table behind sees, bit by bit.
// Oracle: by hand: reg0 is 0x30, becomes 0x35 by a write of 0x5 under 0xf, and hits the second mask of table 1.
TEST(LayoutWalk, SeesWhatRulesWrote) {
  const auto matcher = [](U128 value, U128 bits, std::vector<Action> actions) {
    FlowRule rule;
    rule.match.set(MatchField::kReg0, value, bits);
    rule.actions = std::move(actions);
    Matcher made;
    made.mask = rule.match.mask();
    made.rules.push_back(std::move(rule));
    return made;
  };
  const Action write = {
      .kind = ActionKind::kSetField, .field = MatchField::kReg0, .value = 0x5, .bits = 0xf};
  Layout layout;
  layout.tables.push_back({.id = 0, .matchers = {matcher(0, 0, {write, Action::jump(1)})}});
  layout.tables.push_back(
      {.id = 1,
       .matchers = {matcher(0x30, 0xff, {Action::drop()}), matcher(0x35, 0x7f, {Action::drop()}),
                    matcher(0, 0, {Action::drop()})}});
  Packet packet;
  packet.set(MatchField::kReg0, 0x30);
  EXPECT_EQ(groups_tried(layout, packet, {}), 1 + 2);
}

// Claim:  masks beyond the driver's large groups cost a group for each of their rules, and their
//         rules cost a group to insert and to delete.
// Oracle: by hand: 20 masks of 4 rules with 15 large groups are 15 + 5 * 4 = 35 groups; a quarter
//         of the rules is alone in its group.
TEST(Grouping, MakesMasksBeyondTheKnobCostAGroupForEachRule) {
  const std::string settings = "qp_count=4,message_bytes=65536,signal_every=100,flow_setup_rate=1";
  const std::string twenty = settings + ",server_decap_masks=20,rules_per_mask=4";
  const Observation knob = measured("twin:cx6?large_groups=15", twenty);
  const Observation thirty_five = measured("twin:cx6", settings + ",server_decap_masks=35");
  EXPECT_NEAR(*knob.value(measure::kBandwidth), *thirty_five.value(measure::kBandwidth),
              0.001 * *thirty_five.value(measure::kBandwidth));
  const Observation roomy = measured("twin:cx6?large_groups=20", twenty);
  const Observation plain = measured("twin:cx6", twenty);
  EXPECT_EQ(roomy.measures, plain.measures);
  const Parameters p = load_model("cx6", "")->parameters;
  for (const char* what : {"rule_insert_us", "rule_delete_us"}) {
    EXPECT_NEAR(*knob.value(what) - *plain.value(what), 0.25 * p.rule_group_us, 1e-6) << what;
  }
  EXPECT_FALSE(create("twin:e810?large_groups=15"));
}

Mask mask_of(const std::vector<std::pair<MatchField, U128>>& fields) {
  Mask mask;
  for (const auto& [field, bits] : fields) mask.add(field, bits);
  return mask;
}

// Claim:  a mask takes as many of E810's recipes as its 16-bit words need, and one to join them.
// Oracle: words counted by hand.
TEST(MaskShapes, TakeRecipesByTheWordsTheyLookAt) {
  using F = MatchField;
  const U128 ipv4 = full_mask(F::kIpv4Src);
  const U128 ipv6 = full_mask(F::kIpv6Src);
  EXPECT_EQ(recipes_of(mask_of({{F::kL4DstPort, 0xffff}}), 4), 1);
  EXPECT_EQ(recipes_of(mask_of({{F::kIpv4Src, ipv4}, {F::kIpv4Dst, ipv4}}), 4), 1);
  // The upper half of an address is one word.
  EXPECT_EQ(
      recipes_of(mask_of({{F::kIpv4Src, 0xffff0000U}, {F::kIpv4Dst, ipv4}, {F::kL4SrcPort, 1}}), 4),
      1);
  // 2 + 2 + 1 + 1 + 1 words: two recipes and one that joins them.
  const Mask five_tuple = mask_of({{F::kIpv4Src, ipv4},
                                   {F::kIpv4Dst, ipv4},
                                   {F::kIpProtocol, 0xff},
                                   {F::kL4SrcPort, 0xffff},
                                   {F::kL4DstPort, 0xffff}});
  EXPECT_EQ(recipes_of(five_tuple, 4), 3);
  EXPECT_EQ(recipes_of(mask_of({{F::kIpv6Src, ipv6}, {F::kIpv6Dst, ipv6}}), 4), 5);
}

// Claim:  E810 refuses a layout whose masks take more recipes than it has, or a mask that needs a
//         longer chain; others do not care.
// Oracle: 64 recipes hold 21 masks of three; two IPv6 addresses and a port are 17 words, 6 recipes.
TEST(MaskShapes, LimitWhatE810Takes) {
  using F = MatchField;
  const auto layout = [](int masks, bool wide) {
    Layout made;
    made.tables.emplace_back();
    for (int i = 0; i < masks; ++i) {
      FlowRule rule;
      if (wide) {
        rule.match.set(F::kIpv6Src, 1);
        rule.match.set(F::kIpv6Dst, 2);
        rule.match.set(F::kL4DstPort, 3);
      } else {
        rule.match.set(F::kIpv4Src, 1);
        rule.match.set(F::kIpv4Dst, 2);
        rule.match.set(F::kL4SrcPort, 3);
        rule.match.set(F::kL4DstPort, 0, static_cast<U128>(i) + 1);
        rule.match.set(F::kIpProtocol, 17);
      }
      made.tables[0].matchers.push_back({.mask = rule.match.mask(), .rules = {rule}});
    }
    return made;
  };
  const auto checked = [](Twin& twin, const Layout& wanted) {
    return twin.rules().check(twin.rules().fit(wanted), {});
  };
  auto e810 = create("twin:e810").value();
  EXPECT_TRUE(checked(*e810, layout(21, false)));
  EXPECT_EQ(checked(*e810, layout(22, false)).error().code, ErrorCode::kRefused);
  EXPECT_EQ(checked(*e810, layout(1, true)).error().code, ErrorCode::kRefused);
  const std::string refusal = checked(*e810, layout(1, true)).error().message;
  EXPECT_NE(refusal.find("ipv6_src,ipv6_dst"), std::string::npos) << refusal;
  auto cx6 = create("twin:cx6").value();
  EXPECT_TRUE(checked(*cx6, layout(500, false)));
  EXPECT_TRUE(checked(*cx6, layout(1, true)));
}

}  // namespace
}  // namespace greynic::twin
