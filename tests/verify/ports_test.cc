/// Ports in a code of their own, and rules of port ranges put together again.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "src/space/packet_space.h"
#include "src/space/port_code.h"
#include "src/space/port_runs.h"

namespace greynic::verify {
namespace {

constexpr std::array<MatchField, 2> kPorts = {MatchField::kL4SrcPort, MatchField::kL4DstPort};

/// Single ports, ends of the range, prefixes, and spans of any kind, which overlap.
PortSpan random_span(std::mt19937_64& random) {
  const auto port = static_cast<std::uint32_t>(random() % 65536);
  const auto other = static_cast<std::uint32_t>(random() % 65536);
  switch (random() % 5) {
    case 0:
      return {port, port};
    case 1:
      return {1024, kLastPort};
    case 2:
      return {0, port};
    case 3: {
      const auto open = (std::uint32_t{1} << random() % 17) - 1;
      return {port & ~open, port | open};
    }
    default:
      return {std::min(port, other), std::max(port, other)};
  }
}

// Claim:  a span is the codes of its ports, once each, and no code but theirs; every port has a code
//         that no rule can tell from it.
// Oracle: every port and every code there is, compared with the ends of each span.
TEST(PortCode, IsExact) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    PortCode code;
    std::vector<PortSpan> spans;
    for (std::size_t i = random() % 40; i > 0; --i) spans.push_back(random_span(random));
    if (seed == 1) {  // as many boundaries as there may be
      for (std::uint32_t port = 0; port < kLastPort; port += 2) spans.push_back({port, port});
    }
    for (const PortSpan& span : spans) code.look_at(span);
    code.close();
    ASSERT_LE(code.bits(), 16U);
    const std::uint32_t codes = std::uint32_t{1} << code.bits();
    spans.resize(std::min<std::size_t>(spans.size(), 40));
    const auto asked_of = [&](std::uint32_t port) {
      std::vector<bool> asked;
      for (const PortSpan& span : spans) asked.push_back(span.low <= port && port <= span.high);
      return asked;
    };
    std::set<std::vector<bool>> by_port;
    std::set<std::vector<bool>> by_code;
    for (std::uint32_t port = 0; port <= kLastPort; ++port) by_port.insert(asked_of(port));
    std::vector<std::vector<PortCode::Prefix>> prefixes;
    for (const PortSpan& span : spans) prefixes.push_back(code.prefixes_of(span));
    for (std::uint32_t number = 0; number < codes; ++number) {
      const std::vector<bool> asked = asked_of(code.port_of(number));
      by_code.insert(asked);
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const auto holding = std::count_if(prefixes[i].begin(), prefixes[i].end(),
                                           [&](const PortCode::Prefix& prefix) {
                                             return ((number ^ prefix.value) & prefix.fixed) == 0;
                                           });
        ASSERT_EQ(holding, asked[i] ? 1 : 0) << "seed " << seed << ", code " << number;
      }
    }
    ASSERT_EQ(by_port, by_code) << "seed " << seed;
  }
}

// Claim:  what most rules ask for is one prefix of codes, where it is six of ports.
// Oracle: prefixes, counted.
TEST(PortCode, TakesFewRangesApart) {
  PortCode code;
  for (int i = 0; i < 100; ++i) code.look_at({1024, kLastPort});
  for (const std::uint32_t port : {22U, 53U, 80U, 443U, 1521U, 8080U}) code.look_at({port, port});
  for (std::uint32_t low = 1024; low < 32768; low *= 2) code.look_at({low, 2 * low - 1});
  code.close();
  EXPECT_EQ(code.prefixes_of({1024, kLastPort}).size(), 1U);
  for (const std::uint32_t port : {22U, 1521U})
    EXPECT_EQ(code.prefixes_of({port, port}).size(), 1U);
}

// Claim:  rules that are put together decide every packet as before, and a line's ranges are one rule again.
// Oracle: the first rule of the list that matches, for every packet of a small space, and for its edges.
TEST(PortRuns, DecideAsTheRulesDo) {
  std::size_t given = 0;
  std::size_t made = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Match> rules;
    std::vector<std::uint32_t> effects;
    for (int line = 0; line < 8; ++line) {
      Match whole;
      if (random() % 4 == 0) whole.set(MatchField::kIpv4Dst, random() % 2);
      for (const MatchField port : kPorts) {
        const std::uint64_t low = random() % 15;
        if (random() % 3 != 0) whole.set_range(port, low, low + random() % 5);
      }
      if (random() % 10 == 0) whole.set(MatchField::kL4SrcPort, 2, 6);  // no prefix
      const auto effect = static_cast<std::uint32_t>(random() % 2);
      for (const Match& part : without_ranges(whole)) {
        rules.push_back(part);
        effects.push_back(effect);
      }
    }
    std::vector<const Match*> matches;
    for (const Match& rule : rules) matches.push_back(&rule);
    const auto runs = port_runs(matches, effects);
    given += rules.size();
    made += runs.size();
    for (unsigned number = 0; number < 2 * 21 * 21; ++number) {
      Packet packet;
      packet.set(MatchField::kIpv4Dst, number % 2);
      packet.set(kPorts[0], number / 2 % 21);
      packet.set(kPorts[1], number / 42);
      const auto rule = std::find_if(rules.begin(), rules.end(),
                                     [&](const Match& match) { return match.matches(packet); });
      const auto run = std::find_if(runs.begin(), runs.end(),
                                    [&](const PortRun& one) { return one.match.matches(packet); });
      ASSERT_EQ(rule == rules.end(), run == runs.end()) << "seed " << seed;
      if (rule == rules.end()) continue;
      ASSERT_EQ(effects[static_cast<std::size_t>(rule - rules.begin())], effects[run->first])
          << "seed " << seed << ", " << to_string(packet);
    }
  }
  EXPECT_LT(2 * made, given);
}

// Claim:  a layout with ranges is proven from matcher to matcher, rule by rule: nothing is left to
//         search, and a rule costs some hundred comparisons, not the product of its prefixes.
// Oracle: verify's own count.
TEST(PortRuns, SpareComparisons) {
  const auto text = rules::made_filters({"ipc", 400, 5});
  ASSERT_TRUE(text) << text.error().message;
  const auto rules = rules::parse_rules(*text, "ipc", rules::Format::kClassbench);
  ASSERT_TRUE(rules) << rules.error().message;
  optimizer::OptimizeOptions options;
  options.limits.most_ranges = 2;
  options.max_growth = 2.0;
  const auto made = optimizer::optimize(*rules, rules::uniform_traffic(*rules, 1), options);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(has_ranges(made->layout));
  const auto verdict = verify(*rules, made->layout);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->equivalent);
  EXPECT_EQ(verdict->regions, 0U);
  EXPECT_LT(verdict->comparisons, 300U * rules->rules.size());
}

}  // namespace
}  // namespace greynic::verify
