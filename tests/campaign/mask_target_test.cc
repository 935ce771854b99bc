#include "greynic/campaign/mask_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "greynic/files/campaign_file.h"
#include "greynic/testgen/plan.h"

namespace greynic::campaign {
namespace {

using enum MatchField;

constexpr const char* kCampaign = R"({
  "version": 1, "name": "masks", "design": "pairwise",
  "factors": { "qp_count": { "type": "numeric", "levels": [1, 4] },
               "rules_per_mask": { "type": "numeric", "levels": [1, 3] } },
  "masks": [
    { "name": "a", "fields": ["ether_type", "ipv4_dst", "ipv6_dst"], "bits": "prefix" },
    { "name": "b", "fields": ["ip_protocol", "l4_dst_port"], "bits": "each", "hop": "server_decap" },
    { "name": "c", "fields": ["ethernet_dst"], "bits": "whole" } ],
  "mask_order": true,
  "baseline": { "qp_count": 1 } })";

Campaign campaign() { return files::parse_campaign(kCampaign, "masks.json").value(); }

/// Keeps what is installed and asked; refuses layouts of more matchers than `most`.
class Switch : public target::Target, public target::RuleHolder {
 public:
  explicit Switch(std::size_t most = 1000) : most_(most) {}
  target::Info info() const override { return {.name = "switch", .factors = {"qp_count"}}; }
  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      for (const auto& level : requests[i].configuration.levels()) asked.insert(level.first);
      Observation observation;
      observation.outcome = Outcome::kMeasured;
      observation.measures["matchers"] = {static_cast<double>(layout.matcher_count()), {}};
      layouts.push_back(layout);
      if (!sink(i, observation)) break;
    }
    return {};
  }
  target::RuleHolder& rules() override { return *this; }
  Result<void> check(const target::FittedLayout&, const target::Placement&) override { return {}; }
  Result<void> install(const target::FittedLayout& wanted, const Traffic* sent,
                       const target::Placement& at) override {
    EXPECT_EQ(at.hop, Hop::kServerDecap);
    if (wanted.layout().matcher_count() > most_) return fail(ErrorCode::kRefused, "table is full");
    layout = wanted.layout();
    for (const TrafficFlow& flow : sent->flows) {
      EXPECT_NE(look_up(layout, flow.packet).rule, nullptr) << "a packet that no rule wants";
    }
    return {};
  }
  Result<void> roll_back() override {
    layout = {};
    return {};
  }

  Result<std::vector<target::CountedRule>> counted_rules() override {
    std::vector<target::CountedRule> counted;
    for (const Matcher& matcher : layout.tables.front().matchers) {
      for (const FlowRule& rule : matcher.rules) counted.push_back({rule, 7, 700});
    }
    return counted;
  }

  Layout layout;
  std::vector<Layout> layouts;
  std::set<std::string> asked;

 private:
  std::size_t most_;
};

/// What the masks of one configuration look at, read from its levels by hand.
struct Expected {
  double place;
  std::array<U128, 6> bits;  ///< ether_type, ipv4_dst, ipv6_dst, ip_protocol, l4_dst_port, MAC
};

constexpr std::array kFields = {kEtherType,  kIpv4Dst,   kIpv6Dst,
                                kIpProtocol, kL4DstPort, kEthernetDst};

U128 prefix(double length, int width) {
  U128 bits = 0;
  for (int bit = 0; bit < width; ++bit) bits = bits << 1U | (bit < length ? 1U : 0U);
  return bits;
}

std::vector<Expected> expected_of(const Configuration& c) {
  std::vector<Expected> masks(3, {0, {}});
  const std::string type = c.text("a.ether_type");
  masks[0] = {c.number("a.order"),
              {type == "none" ? 0U : 0xffffU, prefix(c.number("a.ipv4_dst"), 32),
               prefix(c.number("a.ipv6_dst"), 128), 0, 0, 0}};
  masks[1].place = c.number("b.order");
  masks[1].bits[3] = c.text("b.ip_protocol") == "none" ? 0 : 0xff;
  for (unsigned bit = 0; bit < 16; ++bit) {
    if (c.flag("b.l4_dst_port." + std::to_string(bit))) masks[1].bits[4] |= U128{1} << bit;
  }
  masks[2].place = c.number("c.order");
  if (c.flag("c.ethernet_dst")) masks[2].bits[5] = prefix(48, 48);
  std::erase_if(masks, [](const Expected& mask) { return mask.bits == std::array<U128, 6>{}; });
  std::sort(masks.begin(), masks.end(),
            [](const Expected& a, const Expected& b) { return a.place < b.place; });
  return masks;
}

std::vector<Configuration> planned() {
  testgen::PlanOptions options;
  return testgen::make_plan(campaign(), options).value().configurations;
}

// Claim:  a device gets, before each measurement, one matcher for each mask that looks at
//         something, in the order that the configuration says; what is measured has no factor of a
//         mask.
// Oracle: masks read from the levels' names by hand.
// Method: the pairwise plan of three groups with prefixes, single bits and a whole field.
TEST(MaskTarget, InstallsTheMasksOfEachConfigurationInItsOrder) {
  auto owned = std::make_unique<Switch>();
  Switch& device = *owned;
  const auto ready = with_masks(std::move(owned), campaign());
  ASSERT_TRUE(ready) << ready.error().message;
  std::vector<target::MeasureRequest> requests;
  for (const Configuration& configuration : planned()) {
    requests.push_back({.configuration = configuration});
  }
  ASSERT_GT(requests.size(), 9U);
  std::size_t answers = 0;
  ASSERT_TRUE((*ready)->measure(requests, [&](std::size_t index, const Observation&) {
    EXPECT_EQ(index, answers++);
    return true;
  }));
  ASSERT_EQ(device.layouts.size(), requests.size());
  EXPECT_EQ(device.asked, (std::set<std::string>{"qp_count", "rules_per_mask"}));
  std::set<std::size_t> sizes;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Configuration& c = requests[i].configuration;
    const std::vector<Expected> expected = expected_of(c);
    const auto& tables = device.layouts[i].tables;
    ASSERT_EQ(device.layouts[i].matcher_count(), expected.size()) << c.name();
    sizes.insert(expected.size());
    for (std::size_t m = 0; m < expected.size(); ++m) {
      const Matcher& matcher = tables.front().matchers[m];
      for (std::size_t f = 0; f < kFields.size(); ++f) {
        EXPECT_EQ(matcher.mask.bits(kFields[f]), expected[m].bits[f]) << c.name();
      }
      const bool header_only =
          matcher.mask.fields().size() == 1 &&
          (matcher.mask.bits(kEtherType) != 0 || matcher.mask.bits(kIpProtocol) != 0);
      EXPECT_TRUE(matcher.rules.size() <= c.number("rules_per_mask") && !matcher.rules.empty());
      EXPECT_FALSE(header_only && matcher.rules.size() > 1);
      for (const FlowRule& rule : matcher.rules) {
        Packet four;
        four.set(kEtherType, 0x0800);
        Packet six;
        six.set(kEtherType, 0x86dd);
        Match type;
        for (const FieldMatch& field : rule.match.fields()) {
          if (field.field == kEtherType) type.set(field.field, field.value, field.bits);
        }
        EXPECT_TRUE(matcher.mask.bits(kIpv4Dst) == 0 || (type.matches(four) && !type.matches(six)));
        EXPECT_TRUE(matcher.mask.bits(kIpv6Dst) == 0 || (type.matches(six) && !type.matches(four)));
      }
    }
  }
  EXPECT_GT(sizes.size(), 1U);
}

// Claim:  a layout that the device refuses is an observation with that outcome, and the next one is
//         measured again.
TEST(MaskTarget, RecordsARefusedLayoutAsAnOutcome) {
  const auto ready = with_masks(std::make_unique<Switch>(1), campaign());
  ASSERT_TRUE(ready);
  std::vector<target::MeasureRequest> requests;
  for (const Configuration& configuration : planned()) {
    requests.push_back({.configuration = configuration});
  }
  std::size_t refused = 0;
  ASSERT_TRUE((*ready)->measure(requests, [&](std::size_t index, const Observation& observation) {
    const bool too_many = expected_of(requests[index].configuration).size() > 1;
    EXPECT_EQ(observation.outcome, too_many ? Outcome::kRefused : Outcome::kMeasured);
    EXPECT_EQ(observation.reason, too_many ? "table is full" : "");
    refused += too_many ? 1 : 0;
    return true;
  }));
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, requests.size());
}

// Claim:  rules are read through the masks' target, and a layout that is installed from outside
//         stays whatever masks a configuration asks for, until it is rolled back.
// Oracle: what the device under it holds.
TEST(MaskTarget, PassesRulesThrough) {
  auto owned = std::make_unique<Switch>();
  Switch& device = *owned;
  const auto ready = with_masks(std::move(owned), campaign());
  ASSERT_TRUE(ready) << ready.error().message;
  target::RuleHolder& holder = (*ready)->rules();
  FlowRule rule;
  rule.match.set(kIpv4Src, 1);
  const Layout wanted = flat_layout({{rule}, ""});
  const Traffic traffic = traffic_of({{rule}, ""});
  ASSERT_TRUE(holder.install(holder.fit(wanted), &traffic, {}));
  const auto counted = holder.counted_rules();
  ASSERT_TRUE(counted) << counted.error().message;
  ASSERT_EQ(counted->size(), 1U);
  EXPECT_EQ(counted->front().rule.match, rule.match);
  EXPECT_EQ(counted->front().packets, 7U);
  const std::vector<Configuration> plan = planned();
  const auto measured = target::measure_one(**ready, {.configuration = plan.front()});
  ASSERT_TRUE(measured);
  EXPECT_EQ(device.layout, wanted);
  ASSERT_TRUE(holder.roll_back());
  ASSERT_TRUE(target::measure_one(**ready, {.configuration = plan.front()}));
  EXPECT_EQ(device.layout.matcher_count(), expected_of(plan.front()).size());
}

// Claim:  rules of one group differ, as many as its bits can tell apart.
TEST(MaskTarget, MakesAsManyRulesAsTheBitsTellApart) {
  const std::vector<MaskGroup> groups = {{"g", {kIpEcn, kIpDscp}, MaskBits::kEach}};
  Configuration c = {{"rules_per_mask", 5.0}, {"g.ip_dscp.0", true}, {"g.ip_ecn.1", true}};
  const RuleSet four = rules_of(groups, Hop::kServerDecap, c);
  std::set<Match> distinct;
  for (const FlowRule& rule : four.rules) distinct.insert(rule.match);
  EXPECT_EQ(four.rules.size(), 4U);
  EXPECT_EQ(distinct.size(), 4U);
  c.set("g.ip_dscp.3", true);
  EXPECT_EQ(rules_of(groups, Hop::kServerDecap, c).rules.size(), 5U);
  EXPECT_TRUE(rules_of(groups, Hop::kClientEncap, c).rules.empty());
}

// Claim:  a target that holds no rules refuses the campaign by name of the place, before measuring.
TEST(MaskTarget, NeedsATargetThatHoldsRules) {
  class Plain final : public target::Target {
   public:
    target::Info info() const override { return {.name = "plain", .factors = {"qp_count"}}; }
    Result<void> measure(std::span<const target::MeasureRequest> /*requests*/,
                         const target::ObservationSink& /*sink*/) override {
      return {};
    }
  };
  const auto refused = with_masks(std::make_unique<Plain>(), campaign());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
  EXPECT_NE(refused.error().message.find("/masks"), std::string::npos);
}

// Claim:  a campaign that says the masks of one hop twice, or has two factors of a name, is
//         refused.
TEST(MaskTarget, CampaignSaysTheMasksOfAHopOnce) {
  std::string text = kCampaign;
  const auto swap = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const auto read = files::parse_campaign(changed, "masks.json");
    return read ? std::string() : read.error().message;
  };
  EXPECT_NE(swap("qp_count\": {", "server_decap_masks\": {").find("/masks/0"), std::string::npos);
  EXPECT_NE(swap("\"b\"", "\"a\"").find("a.order"), std::string::npos);
  EXPECT_NE(swap("\"ipv4_dst\"", "\"ipv5_dst\"").find("ipv5_dst"), std::string::npos);
  EXPECT_NE(swap("\"ether_type\", ", "").find("add ether_type"), std::string::npos);
}

}  // namespace
}  // namespace greynic::campaign
