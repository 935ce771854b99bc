/// Layouts that are installed on a fleet, fleets of several models, and how long new flows wait.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fleet/flow_start.h"
#include "fleet/rnic_rules.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

Observation measured(target::Target& twin, const std::string& settings) {
  target::MeasureRequest request;
  request.configuration = parse_configuration(settings).value();
  request.seed = 11;
  auto got = target::measure_one(twin, request);
  EXPECT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->outcome, Outcome::kMeasured) << got->reason;
  return std::move(*got);
}

FlowRule to_host(std::uint32_t address, unsigned length, const std::string& port,
                 std::uint32_t line) {
  FlowRule rule;
  rule.match.set(MatchField::kIpv4Dst, address, 0xffffffffU << (32 - length));
  rule.actions = {Action::forward(port)};
  rule.weight = 1;
  rule.from = {line};
  return rule;
}

void add_matcher(LayoutTable& table, std::vector<FlowRule> rules) {
  const auto place = static_cast<RulePriority>(table.matchers.size());
  table.matchers.push_back({rules.front().match.mask(), place, std::move(rules)});
}

/// So many matchers, all traffic in the last.
Layout chain_of(int count) {
  Layout layout{{{0, {}}}};
  for (int i = 0; i < count; ++i) {
    FlowRule rule = to_host(0x0a000000, 32U - static_cast<unsigned>(i), "p1", 0);
    rule.weight = i + 1 == count ? 1e9 : 1e-9;
    add_matcher(layout.tables.front(), {rule});
  }
  return layout;
}

Traffic to(const std::vector<std::pair<std::uint32_t, double>>& addresses) {
  Traffic traffic;
  for (const auto& [address, weight] : addresses) {
    TrafficFlow flow;
    flow.packet.set(MatchField::kIpv4Dst, address);
    flow.weight = weight;
    traffic.flows.push_back(flow);
  }
  return traffic;
}

void install(Twin& twin, const Layout& layout, const Traffic* traffic) {
  const auto fitted = twin.rules().fit(layout);
  const auto done = twin.rules().install(fitted, traffic, {Hop::kServerDecap});
  ASSERT_TRUE(done) << done.error().message;
}

// Claim:  packets that try n groups of an installed layout cost a fleet what n masks of a
//         configuration cost it, and rolling back brings back what was there.
// Oracle: the factor server_decap_masks, which adds to the one group of the fleet's own.
TEST(FleetLayout, CostsWhatSoManyMasksCost) {
  auto twin = create("twin:cx6?fleet=training&hosts=8&threads=1");
  ASSERT_TRUE(twin) << twin.error().message;
  const Observation plain = measured(**twin, "");
  const Observation masks = measured(**twin, "server_decap_masks=11");
  EXPECT_LT(*masks.value(measure::kBandwidth), *plain.value(measure::kBandwidth));
  const Traffic traffic = to({{0x0a000002, 1.0}});  // 0x0a000002/30 and wider
  const Layout layout = chain_of(14);
  const double tried = expected_matchers_tried(layout, traffic);
  install(**twin, layout, &traffic);
  const Observation installed = measured(**twin, "");
  const Observation same =
      measured(**create("twin:cx6?fleet=training&hosts=8&threads=1"),
               "server_decap_masks=" + std::to_string(static_cast<int>(tried) - 1));
  for (const auto name : {measure::kBandwidth, measure::kLatencyMean}) {
    EXPECT_DOUBLE_EQ(*installed.value(name), *same.value(name)) << name;
  }
  ASSERT_TRUE((*twin)->rules().roll_back());
  EXPECT_EQ(measured(**twin, "").measures, plain.measures);
}

// Claim:  each model of a mixed fleet sends what it would send alone; no traffic crosses.
// Oracle: a fleet of the first model with half of the hosts, RNICs and containers.
TEST(FleetLayout, KeepsModelsApart) {
  const auto alone = create("twin:cx5?fleet=training&hosts=8&threads=1");
  const auto mixed = create("twin:cx5?fleet=training&hosts=16&models=cx5,cx7&threads=1");
  ASSERT_TRUE(alone) << alone.error().message;
  ASSERT_TRUE(mixed) << mixed.error().message;
  const Observation own = measured(**alone, "");
  const Observation both = measured(**mixed, "");
  EXPECT_DOUBLE_EQ(*own.value(measure::kBandwidth), *both.value("bandwidth_gbps.cx5"));
  EXPECT_DOUBLE_EQ(*own.value(measure::kLatencyMean), *both.value("latency_us_mean.cx5"));
  EXPECT_GT(*both.value("bandwidth_gbps.cx7"), *both.value("bandwidth_gbps.cx5"));
  EXPECT_NEAR(*both.value(measure::kBandwidth),
              (*both.value("bandwidth_gbps.cx5") + *both.value("bandwidth_gbps.cx7")) / 2, 1e-9);
}

// Claim:  RNICs send what they have work for, and no more than their link lets through.
// Oracle: the mean of an even draw from 150 to 400, cut at the link's rate: 275 at 400 Gbit/s, and
//         all of 200 where it is not below; five standard errors, headers aside.
TEST(FleetLayout, SendsWhatThereIsWorkFor) {
  const auto fast = create("twin:cx7?fleet=training&hosts=100&threads=1");
  ASSERT_TRUE(fast) << fast.error().message;
  const Observation seen = measured(**fast, "message_bytes=1048576,mtu_bytes=4096");
  const double error = (400.0 - 150.0) / std::sqrt(12.0) / std::sqrt(400.0);
  EXPECT_NEAR(*seen.value(measure::kBandwidth), 275, 5 * error);
}

// Claim:  packets tried groups, and what goes to software, are counted as a slow lookup counts them,
//         with a slow path, with jumps, and with lookup recipes that are used up.
// Oracle: core's lookup of each packet; a cut of the layout by hand.
TEST(FleetLayout, CountsGroupsAsALookupDoes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    Layout layout{{{0, {}}, {1, {}}, {2, {}}}};
    layout.tables[2].software = true;
    for (int t = 0; t < 3; ++t) {
      for (int m = 0; m < 4; ++m) {
        std::vector<FlowRule> rules;
        const unsigned length = 28 + (random() + m) % 5;
        for (int r = 0; r < 3; ++r) {
          const auto value =
              static_cast<std::uint32_t>(0x0a000000 | (random() % 64)) & (~0U << (32 - length));
          rules.push_back(to_host(value, length, "p" + std::to_string(r), r));
          if (t == 0 && random() % 2 == 0) rules.back().actions = {Action::jump(1 + random() % 2)};
        }
        add_matcher(layout.tables[t], std::move(rules));
      }
    }
    Traffic traffic;
    for (std::uint32_t i = 0; i < 64; ++i) {
      traffic.flows.push_back(to({{0x0a000000 | i, 1.0 + i % 3}}).flows.front());
    }
    Layout hardware = layout;
    hardware.tables.pop_back();
    LayoutLimits limits;
    limits.most_recipes = round % 2 == 0 ? LayoutLimits::kNoLimit : 6;
    const std::size_t held_of_second = round % 2 == 0 ? 4 : 2;
    double groups = 0;
    double software = 0;
    double all = 0;
    for (const TrafficFlow& flow : traffic.flows) {
      all += flow.weight;
      Lookup found = look_up(hardware, flow.packet);
      bool slow = found.rule != nullptr && !found.rule->actions.empty() &&
                  found.rule->actions.front() == Action::jump(2);
      if (held_of_second < 4) {
        const Layout first{{hardware.tables[0]}};
        const Lookup before = look_up(first, flow.packet);
        if (found.matchers_tried > before.matchers_tried + held_of_second) {
          found.matchers_tried = before.matchers_tried + held_of_second;
          slow = true;
        }
      }
      groups += flow.weight * static_cast<double>(found.matchers_tried);
      software += slow ? flow.weight : 0;
    }
    const RnicRules rules = rules_of(layout, &traffic, limits);
    EXPECT_NEAR(rules.groups, groups / all, 1e-9) << round;
    EXPECT_NEAR(rules.software_share, software / all, 1e-9) << round;
  }
}

// Claim:  a flow that starts alone waits for the way up and its entry; of a burst, so many at once as
//         the driver has slots, in turn; other entries of the same line hold up no flow of the burst.
// Oracle: arithmetic.
TEST(FlowStart, WaitsForItsTurnAndNoLonger) {
  Parameters rnic;
  rnic.upcall_us = 80;
  rnic.slow_path_mpps = 1;  // 1 us a packet
  rnic.rule_insert_us = 50;
  SwitchParameters s;
  s.insert_slot_count = 2;
  s.insert_doubling_count = 100;
  s.slow_path_core_count = 1;
  RnicRules rules;
  rules.flows = {{.until = 1, .groups_missed = 10, .group_rules = 100, .other_entries = 5}};
  StartLoad load{.starts_per_day = 1, .burst_count = 1, .group_ns = 200, .flows = 100};
  const LatencyHistogram alone = flow_start_delays(rnic, s, rules, load, 1);
  const double single = 2e3 + 1e3 + 80e3 + 100e3;  // groups, core, upcall, entry
  EXPECT_NEAR(alone.quantile_ns(0.5), single, 0.01 * single);
  EXPECT_NEAR(static_cast<double>(alone.max_ns()), single, 1);
  load.burst_count = 8;
  load.flows = 800;
  const LatencyHistogram burst = flow_start_delays(rnic, s, rules, load, 1);
  // The last of 8 in two slots: three pairs before it, the first of which began after 1 us.
  EXPECT_NEAR(static_cast<double>(burst.min_ns()), single, 1);
  EXPECT_NEAR(static_cast<double>(burst.max_ns()), single + 1e3 + 3 * 100e3, 2e3);
  rules.flows.front().software = true;
  const LatencyHistogram slow = flow_start_delays(rnic, s, rules, load, 1);
  EXPECT_NEAR(static_cast<double>(slow.max_ns()), 2e3 + 8e3 + 80e3, 1);
}

// Claim:  entries that could wait hold up later bursts once they come faster than the driver is.
// Oracle: the same load without them.
TEST(FlowStart, IsHeldUpByOtherEntriesWhenTheDriverIsBusy) {
  Parameters rnic;
  rnic.upcall_us = 80;
  rnic.slow_path_mpps = 1;
  rnic.rule_insert_us = 50;
  const SwitchParameters s{
      .slow_path_core_count = 1, .insert_slot_count = 1, .insert_doubling_count = 4096};
  const StartLoad load{
      .starts_per_day = 86400.0 * 5000, .burst_count = 1, .group_ns = 0, .flows = 20'000};
  RnicRules rules;
  rules.flows = {{.until = 1}};
  const double without = flow_start_delays(rnic, s, rules, load, 3).mean_ns();
  rules.flows.front().other_entries = 10;
  EXPECT_GT(flow_start_delays(rnic, s, rules, load, 3).mean_ns(), 1.1 * without);
}

// Claim:  what cannot be is refused with what to do about it.
TEST(FleetLayout, RefusesWhatCannotBe) {
  const auto message = [](const std::string& target) {
    const auto twin = create(target);
    return twin ? std::string() : twin.error().message;
  };
  EXPECT_NE(message("twin:cx6?models=cx7").find("add hosts"), std::string::npos);
  EXPECT_NE(message("twin:cx6?fleet=training&models=cx3").find("leave it out"), std::string::npos);
  EXPECT_NE(message("twin:cx6?fleet=training&models=cx7,cx7").find("twice"), std::string::npos);
  EXPECT_NE(message("twin:cx6?fleet=training&models=cx9").find("cx9"), std::string::npos);
  // More lookup recipes than the E810 has, over several tables: which of them it holds matters.
  auto twin = create("twin:e810?fleet=training&hosts=8");
  ASSERT_TRUE(twin) << twin.error().message;
  Layout layout = chain_of(30);
  layout.tables.push_back({1, {}});
  for (unsigned i = 0; i < 80; ++i) {
    FlowRule rule = to_host(0x0a000000, 32 - i % 30, "p", 0);
    rule.match.set(MatchField::kL4DstPort, i, i + 1);
    add_matcher(layout.tables.back(), {rule});
  }
  const auto done = (*twin)->rules().check((*twin)->rules().fit(layout), {Hop::kServerDecap});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kRefused);
  EXPECT_NE(done.error().message.find("E810"), std::string::npos) << done.error().message;
}

// Claim:  RNICs that cannot hold a layout keep what they have, and the fleet says how many took it.
// Oracle: what they sent before.
TEST(FleetLayout, LeavesRnicsAloneThatCannotHoldIt) {
  auto twin = create("twin:cx6?fleet=training&hosts=16&models=cx6,e810&threads=1");
  ASSERT_TRUE(twin) << twin.error().message;
  const Traffic traffic = to({{0x0a000002, 1.0}});
  install(**twin, chain_of(14), &traffic);
  const Observation before = measured(**twin, "");
  EXPECT_DOUBLE_EQ(*before.value("layout_share"), 1);
  Layout better = chain_of(1);
  better.tables.push_back({1, {}});
  for (unsigned i = 0; i < 80; ++i) {
    FlowRule rule = to_host(0x0b000000, 32 - i % 30, "p", 0);
    rule.match.set(MatchField::kL4DstPort, i, i + 1);
    add_matcher(better.tables.back(), {rule});
  }
  install(**twin, better, &traffic);
  const Observation after = measured(**twin, "");
  EXPECT_DOUBLE_EQ(*after.value("layout_share"), 0.5);
  EXPECT_GT(*after.value("bandwidth_gbps.cx6"), *before.value("bandwidth_gbps.cx6"));
  EXPECT_DOUBLE_EQ(*after.value("bandwidth_gbps.e810"), *before.value("bandwidth_gbps.e810"));
}

// Claim:  each model gets the layout that is made for it, side by side, and sends what a fleet of that
//         model alone sends with it; one model that refuses its own leaves all as they were; rolling
//         back puts all back.
// Oracle: fleets of one model with half of the hosts; what was measured before.
TEST(FleetLayout, InstallsALayoutForEachModel) {
  auto twin = create("twin:cx5?fleet=training&hosts=16&models=cx5,e810&threads=1");
  ASSERT_TRUE(twin) << twin.error().message;
  target::RuleHolder& holder = (*twin)->rules();
  const auto models = holder.models();
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0].models, std::vector<std::string>{"cx5"});
  EXPECT_EQ(models[0].limits.most_recipes, LayoutLimits::kNoLimit);
  EXPECT_EQ(models[1].models, std::vector<std::string>{"e810"});
  EXPECT_EQ(models[1].limits.most_recipes, 64U);
  EXPECT_GT(models[1].slow_path, 100.0);
  const Traffic traffic = to({{0x0a000002, 1.0}});
  const Observation plain = measured(**twin, "");
  const ModelLayouts own = {{{"cx5"}, chain_of(14)}, {{"e810"}, chain_of(3)}};
  ASSERT_TRUE(holder.takes(own, "own.json"));
  const auto done = holder.install(holder.fit(own), &traffic, {Hop::kServerDecap});
  ASSERT_TRUE(done) << done.error().message;
  const Observation seen = measured(**twin, "");
  EXPECT_DOUBLE_EQ(*seen.value("layout_share"), 1);
  for (const ModelLayout& part : own) {
    auto alone = create("twin:" + part.models.front() + "?fleet=training&hosts=8&threads=1");
    ASSERT_TRUE(alone) << alone.error().message;
    install(**alone, part.layout, &traffic);
    const double wanted = *measured(**alone, "").value(measure::kBandwidth);
    // The second model's containers are placed with another seed.
    EXPECT_NEAR(*seen.value("bandwidth_gbps." + part.models.front()), wanted, 0.05 * wanted);
  }
  Layout wide = chain_of(1);
  FlowRule rule = to_host(0x0b000000, 32, "p", 0);
  rule.match.set(MatchField::kIpv6Src, 1);
  rule.match.set(MatchField::kIpv6Dst, 1);
  add_matcher(wide.tables.front(), {rule});
  wide.tables.push_back({1, {}});
  const ModelLayouts bad = {{{"cx5"}, chain_of(1)}, {{"e810"}, wide}};
  const auto refused = holder.install(holder.fit(bad), &traffic, {Hop::kServerDecap});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().message.find("E810"), std::string::npos) << refused.error().message;
  EXPECT_EQ(measured(**twin, "").measures, seen.measures);
  ASSERT_TRUE(holder.roll_back());
  EXPECT_EQ(measured(**twin, "").measures, plain.measures);
}

// Claim:  layouts for models that are not there, or that leave one out, are refused in words.
// Oracle: the messages.
TEST(FleetLayout, RefusesLayoutsOfOtherModels) {
  auto fleet = create("twin:cx5?fleet=training&hosts=16&models=cx5,e810");
  auto pair = create("twin:cx5");
  ASSERT_TRUE(fleet && pair);
  const auto message = [&](Twin& twin, const ModelLayouts& layouts) {
    const auto taken = twin.rules().takes(layouts, "own.json");
    return taken ? std::string() : taken.error().message;
  };
  const Layout some = chain_of(2);
  EXPECT_NE(message(**fleet, {{{"cx5"}, some}}).find("no layout for e810"), std::string::npos);
  EXPECT_NE(message(**fleet, {{{"cx5", "cx9", "e810"}, some}}).find("'cx9'"), std::string::npos);
  EXPECT_NE(message(**pair, {{{"cx5"}, some}}).find("name the fleet"), std::string::npos);
  EXPECT_EQ(message(**fleet, {{{}, some}}), "");
  EXPECT_EQ(message(**pair, {{{}, some}}), "");
}

}  // namespace
}  // namespace greynic::twin
