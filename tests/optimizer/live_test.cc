/// Layouts that follow their rules.

#include "greynic/optimizer/live.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "random_rules.h"
#include "sized.h"

namespace greynic::optimizer {
namespace {

/// What the layout does to a packet that enters at a table; null: nothing matches.
const FlowRule* by_layout(const Layout& layout, const Packet& packet, std::uint32_t table) {
  const FlowRule* const rule = look_up(layout, packet, table).rule;
  const bool lost_on_the_way =
      rule != nullptr && !rule->actions.empty() && rule->actions.back().kind == ActionKind::kJump;
  return lost_on_the_way ? nullptr : rule;
}

/// Rules as a list in their order, kept by this test alone, beside a LiveLayout.
class Followed {
 public:
  Followed(RuleSet rules, double growth, std::uint64_t seed, LiveOptions options = {})
      : random_(seed) {
    std::stable_sort(rules.rules.begin(), rules.rules.end(),
                     [](const auto& a, const auto& b) { return a.priority < b.priority; });
    options.search.max_growth = growth;
    if (options.full_layouts == FullLayouts::kAtOnce) {
      options.max_drift = std::numeric_limits<double>::infinity();
    }
    auto made = optimize(rules, rules::uniform_traffic(rules, 1), options.search);
    EXPECT_TRUE(made) << made.error().message;
    auto live = LiveLayout::create(rules, made->layout, options);
    EXPECT_TRUE(live) << live.error().message;
    live_.emplace(std::move(*live));
    for (RuleId id = 0; id < rules.rules.size(); ++id) list_.push_back({id, rules.rules[id]});
  }

  /// In front of a random rule of its table, or by its priority number.
  void insert(FlowRule rule) {
    std::optional<RuleId> before;
    auto place = list_.end();
    if (random_() % 2 == 0 && !list_.empty()) {
      place = list_.begin() + static_cast<std::ptrdiff_t>(random_() % list_.size());
      before = place->id;
      rule.table = place->rule.table;
      rule.priority = place->rule.priority;
    } else {
      place = std::find_if(list_.begin(), list_.end(), [&](const Row& row) {
        return row.rule.table == rule.table && row.rule.priority > rule.priority;
      });
    }
    const auto step = live_->insert(rule, before);
    ASSERT_TRUE(step) << step.error().message;
    rebuilds_ += step->rebuilt ? 1 : 0;
    waiting_ += step->waits ? 1 : 0;
    list_.insert(place, {step->rule, rule});
  }

  FlowRule erase() {
    const auto place = list_.begin() + static_cast<std::ptrdiff_t>(random_() % list_.size());
    FlowRule gone = place->rule;
    const auto step = live_->erase(place->id);
    EXPECT_TRUE(step) << step.error().message;
    rebuilds_ += step && step->rebuilt ? 1 : 0;
    waiting_ += step && step->waits ? 1 : 0;
    list_.erase(place);
    return gone;
  }

  void weigh() {
    const auto step = live_->weigh(list_[random_() % list_.size()].id,
                                   0.01 + static_cast<double>(random_() % 1000) / 10.0);
    ASSERT_TRUE(step) << step.error().message;
  }

  [[nodiscard]] const FlowRule* by_rules(const Packet& packet, std::uint32_t table) const {
    const auto found = std::find_if(list_.begin(), list_.end(), [&](const Row& row) {
      return row.rule.table == table && row.rule.match.matches(packet);
    });
    return found == list_.end() ? nullptr : &found->rule;
  }

  [[nodiscard]] const LiveLayout& live() const { return *live_; }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] int rebuilds() const { return rebuilds_; }
  [[nodiscard]] int waiting() const { return waiting_; }
  std::mt19937_64& random() { return random_; }
  [[nodiscard]] const FlowRule& any_rule() { return list_[random_() % list_.size()].rule; }

 private:
  struct Row {
    RuleId id;
    FlowRule rule;
  };
  std::vector<Row> list_;
  std::optional<LiveLayout> live_;
  std::mt19937_64 random_;
  int rebuilds_ = 0;
  int waiting_ = 0;
};

void expect_alike(const Followed& followed, const Layout& layout, const Packet& packet,
                  std::uint32_t table) {
  const FlowRule* const wanted = followed.by_rules(packet, table);
  const FlowRule* const got = by_layout(layout, packet, table);
  ASSERT_EQ(wanted == nullptr, got == nullptr) << to_string(packet);
  if (wanted != nullptr) ASSERT_EQ(wanted->actions, got->actions) << to_string(packet);
}

class UpdatesBeside : public testing::TestWithParam<std::uint64_t> {};

// Claim:  with full layouts in a second thread, each packet gets what the first matching rule says after
//         every step, be it by software, and whenever that thread is waited for, wherever it was when
//         steps came, and whatever they took.
// Oracle: as below.
// Method: steps that may look at so little that every few need a full layout, or that drift at once;
//         looked at after 1 to 20 of them.
TEST_P(UpdatesBeside, AreAllInEffectOnceTheyAreWaitedFor) {
  const std::uint64_t seed = GetParam();
  LiveOptions options;
  options.full_layouts = FullLayouts::kBeside;
  options.max_drift = seed % 2 == 0 ? 0.01 : 10.0;
  options.most_comparisons = seed % 3 == 0 ? 1'000'000 : 60;
  Followed followed(small_random_rules(30, 3, seed), 2.0, seed, options);
  const RuleSet more = small_random_rules(200, 3, seed + 1000);
  int by_software = 0;
  for (const FlowRule& rule : more.rules) {
    if (followed.size() > 40 || (followed.size() > 5 && followed.random()() % 2 == 0)) {
      followed.erase();
    } else {
      ASSERT_NO_FATAL_FAILURE(followed.insert(rule));
    }
    if (followed.random()() % 4 == 0) ASSERT_NO_FATAL_FAILURE(followed.weigh());
    if (followed.random()() % 3 == 0) {
      const auto now = followed.live().layout_now();
      ASSERT_TRUE(now) << now.error().message;
      by_software += std::ranges::any_of(now->tables, &LayoutTable::software) ? 1 : 0;
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        ASSERT_NO_FATAL_FAILURE(expect_alike(followed, *now, SmallSpace::packet(number), 0));
      }
    }
    if (followed.random()() % 10 != 0) continue;
    const Layout layout = followed.live().layout();
    EXPECT_EQ(followed.live().rules().rules.size(), followed.size());
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      ASSERT_NO_FATAL_FAILURE(expect_alike(followed, layout, SmallSpace::packet(number), 0));
    }
  }
  if (seed % 3 != 0) {
    EXPECT_GT(followed.waiting(), 0);
    EXPECT_GT(by_software, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, UpdatesBeside, testing::Range<std::uint64_t>(1, 13));

class SmallUpdates : public testing::TestWithParam<std::uint64_t> {};

// Claim:  after every step each packet gets what the first matching rule says, whatever overlaps and
//         however many rules are of equal priority.
// Oracle: a list of the rules that the test keeps itself, and core's lookup in the layout.
// Method: 150 random steps on sets over 10 bits, in one table and in two; all 1,024 packets after
//         each.
TEST_P(SmallUpdates, TreatEveryPacketAsTheRulesSay) {
  const std::uint64_t seed = GetParam();
  const std::uint32_t tables = seed % 3 == 0 ? 2 : 1;
  Followed followed(small_random_rules(30, 3, seed, tables), 1.0 + static_cast<double>(seed % 4),
                    seed);
  const RuleSet more = small_random_rules(150, 3, seed + 1000, tables);
  for (const FlowRule& rule : more.rules) {
    if (followed.size() > 40 || (followed.size() > 5 && followed.random()() % 2 == 0)) {
      followed.erase();
    } else {
      ASSERT_NO_FATAL_FAILURE(followed.insert(rule));
    }
    if (followed.random()() % 4 == 0) ASSERT_NO_FATAL_FAILURE(followed.weigh());
    const Layout layout = followed.live().layout();
    for (std::uint32_t table = 0; table < tables; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        ASSERT_NO_FATAL_FAILURE(expect_alike(followed, layout, SmallSpace::packet(number), table));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SmallUpdates, testing::Range<std::uint64_t>(0, 8));

/// Bits of one match, then of another, then drawn.
Packet packet_in(const Match& first, const Match& second, std::mt19937_64& random) {
  Packet packet;
  for (const MatchFieldInfo& row : match_fields()) {
    packet.set(row.field, (U128{random()} << 64 | U128{random()}) & full_mask(row.field));
  }
  for (const Match* from : {&second, &first}) {
    for (const FieldMatch& part : from->fields()) {
      packet.set(part.field, part.value | (packet.value(part.field) & ~part.bits));
    }
  }
  return packet;
}

class MadeUpdates : public testing::TestWithParam<const char*> {};

// Claim:  the same on sets whose layouts have cuts, with shared tables behind them; nine of ten steps
//         need no full layout.
// Oracle: as above; at the end verify(), which knows nothing of steps.
// Method: 300 steps that take out rules and put others in, at random places; 30 packets of the
//         changed rule and of pairs with others after each.
TEST_P(MadeUpdates, TreatPacketsAsTheRulesSay) {
  const auto wanted = rules::made_filters_named(GetParam());
  ASSERT_TRUE(wanted && *wanted);
  const auto text = rules::made_filters(**wanted);
  ASSERT_TRUE(text);
  auto rules = rules::parse_rules(*text, GetParam());
  ASSERT_TRUE(rules) << rules.error().message;
  std::mt19937_64 random(3);
  std::vector<FlowRule> out;
  RuleSet kept;
  for (FlowRule& rule : rules->rules) (random() % 5 == 0 ? out : kept.rules).push_back(rule);
  Followed followed(kept, 2.0, 4);
  EXPECT_GT(followed.live().layout().tables.size(), 1U) << "no cuts: this tests little";
  for (int step = 0; step < sized(300, 40); ++step) {
    FlowRule changed;
    if (!out.empty() && random() % 2 == 0) {
      std::swap(out[random() % out.size()], out.back());
      changed = out.back();
      out.pop_back();
      ASSERT_NO_FATAL_FAILURE(followed.insert(changed));
    } else {
      changed = followed.erase();
      out.push_back(changed);
    }
    if (random() % 4 == 0) ASSERT_NO_FATAL_FAILURE(followed.weigh());
    const Layout layout = followed.live().layout();
    for (int i = 0; i < 30; ++i) {
      const Packet packet = packet_in(changed.match, followed.any_rule().match, random);
      ASSERT_NO_FATAL_FAILURE(expect_alike(followed, layout, packet, 0)) << "step " << step;
    }
  }
  EXPECT_LE(followed.rebuilds(), 30);
  const auto verdict = verify::verify(followed.live().rules(), followed.live().layout());
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->equivalent);
}

INSTANTIATE_TEST_SUITE_P(Sets, MadeUpdates,
                         testing::Values("made:acl:400:1", "made:ipc:400:2", "made:fw:60:3"));

FlowRule rule_to(std::uint32_t address, unsigned bits, RulePriority priority, Action action) {
  FlowRule rule;
  rule.match.set(MatchField::kIpv4Dst, address, U128{0xffffffff} << (32 - bits) & 0xffffffff);
  rule.priority = priority;
  rule.actions = {std::move(action)};
  return rule;
}

// Claim:  a rule that was left out, as others covered it, is there again when they go.
// Oracle: worked by hand.
// Method: 10.1.0.1 to p1 is left out beside 10.1.0.0/16 to p1; the latter goes.
TEST(LiveLayout, BringsBackWhatAnotherRuleCovered) {
  const RuleSet rules{{rule_to(0x0a010001, 32, 0, Action::forward("p1")),
                       rule_to(0x0a010000, 16, 1, Action::forward("p1")),
                       rule_to(0x0a000000, 8, 2, Action::drop())},
                      "by hand"};
  const auto made = optimize(rules, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->rules_dropped, 1U);
  auto live = LiveLayout::create(rules, made->layout);
  ASSERT_TRUE(live) << live.error().message;
  ASSERT_TRUE(live->erase(1));
  Packet packet;
  packet.set(MatchField::kIpv4Dst, 0x0a010001);
  EXPECT_EQ(look_up(live->layout(), packet).rule->actions.front(), Action::forward("p1"));
  packet.set(MatchField::kIpv4Dst, 0x0a010002);
  EXPECT_EQ(look_up(live->layout(), packet).rule->actions.front(), Action::drop());
}

// Claim:  a layout that follows its rules is laid out anew when it tries more matchers than allowed.
// Oracle: without a bound the same steps drift beyond it.
// Method: rules of ever new masks, with a bound of 5 % and without.
TEST(LiveLayout, IsLaidOutAnewBeforeItDriftsTooFar) {
  double worst[2] = {0.0, 0.0};
  int rebuilds[2] = {0, 0};
  for (const int bounded : {0, 1}) {
    LiveOptions options;
    if (bounded == 0) options.max_drift = std::numeric_limits<double>::infinity();
    RuleSet rules;
    for (std::uint32_t i = 0; i < 64; ++i) {
      rules.rules.push_back(rule_to(i << 24, 8, i, Action::forward("p" + std::to_string(i % 5))));
    }
    const auto made = optimize(rules, {});
    ASSERT_TRUE(made);
    auto live = LiveLayout::create(rules, made->layout, options);
    ASSERT_TRUE(live);
    for (std::uint32_t i = 0; i < 20; ++i) {
      const auto step = live->insert(rule_to(i << 24, 9 + i, 0, Action::drop()));
      ASSERT_TRUE(step) << step.error().message;
      rebuilds[bounded] += step->rebuilt ? 1 : 0;
      worst[bounded] = std::max(worst[bounded], live->drift());
    }
  }
  EXPECT_EQ(rebuilds[0], 0);
  EXPECT_GT(worst[0], 0.05);
  EXPECT_GT(rebuilds[1], 0);
  EXPECT_LE(worst[1], 0.05);
}

// Claim:  a rule of a field that no rule looked at, of a new table, or with a jump to a number that the
//         layout gave to a table of its own, is taken as well.
// Oracle: verify().
TEST(LiveLayout, TakesRulesThatNeedAFullLayout) {
  RuleSet rules;
  for (std::uint32_t i = 0; i < 200; ++i) {
    rules.rules.push_back(rule_to(i << 20, 12 + i % 20, i, Action::forward("p")));
    rules.rules.push_back(rule_to(i << 18, 14 + i % 18, i, Action::drop()));
  }
  const auto made = optimize(rules, {});
  ASSERT_TRUE(made);
  auto live = LiveLayout::create(rules, made->layout);
  ASSERT_TRUE(live) << live.error().message;
  FlowRule other_field;
  other_field.match.set(MatchField::kIpv4Src, 7);
  FlowRule other_table = rule_to(1, 32, 0, Action::drop());
  other_table.table = 1;
  FlowRule jumps = rule_to(2, 32, 0, Action::jump(2));
  for (const FlowRule& rule : {other_field, other_table, jumps}) {
    ASSERT_TRUE(live->insert(rule));
    const auto verdict = verify::verify(live->rules(), live->layout());
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent);
  }
}

// Claim:  a layout of other rules is refused, with a packet.
TEST(LiveLayout, RefusesALayoutOfOtherRules) {
  RuleSet rules{{rule_to(0x0a000000, 8, 0, Action::drop())}, "by hand"};
  const auto made = optimize(rules, {});
  ASSERT_TRUE(made);
  rules.rules.front().actions = {Action::forward("p1")};
  const auto live = LiveLayout::create(rules, made->layout);
  ASSERT_FALSE(live);
  EXPECT_EQ(live.error().code, ErrorCode::kBadInput);
  EXPECT_NE(live.error().message.find("ipv4_dst=10."), std::string::npos) << live.error().message;
}

}  // namespace
}  // namespace greynic::optimizer
