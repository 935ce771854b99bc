#include "greynic/rules/made_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "greynic/rules/read_rules.h"

namespace greynic::rules {
namespace {

std::set<std::string> lines_in(const std::string& text) {
  std::set<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

RuleSet made(const MadeFilters& wanted) {
  const auto text = made_filters(wanted);
  EXPECT_TRUE(text) << text.error().message;
  const auto read = parse_rules(*text, "made");
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

TEST(MadeFilters, AreAsManyDifferentLinesAsWereAskedFor) {
  for (const char* family : {"acl", "fw", "ipc"}) {
    for (const std::uint64_t count : {1U, 7U, 3000U}) {
      const auto text = made_filters({family, count, 3});
      ASSERT_TRUE(text) << text.error().message;
      EXPECT_EQ(lines_in(*text).size(), count) << family;
      EXPECT_EQ(*text, *made_filters({family, count, 3}));
      if (count > 1) {
        EXPECT_NE(*text, *made_filters({family, count, 4}));
      }
    }
  }
}

// Claim:  families differ as their description says: a firewall's rules are wilder and wider.
TEST(MadeFilters, DifferByFamily) {
  const auto share_wild = [](const RuleSet& set, MatchField field) {
    const auto wild = std::count_if(set.rules.begin(), set.rules.end(), [&](const FlowRule& rule) {
      return rule.match.mask().bits(field) == 0;
    });
    return static_cast<double>(wild) / static_cast<double>(set.rules.size());
  };
  const RuleSet acl = made({"acl", 2000, 1});
  const RuleSet fw = made({"fw", 2000, 1});
  EXPECT_GT(share_wild(fw, MatchField::kIpv4Src), 2 * share_wild(acl, MatchField::kIpv4Src));
  EXPECT_GT(share_wild(fw, MatchField::kIpv4Dst), 2 * share_wild(acl, MatchField::kIpv4Dst));
  EXPECT_LT(acl.rules.size(), 2 * 2000U);
  EXPECT_GT(fw.rules.size(), 2 * 2000U);  // wide ports are many prefixes
}

TEST(MadeFilters, AreNamedInPlaceOfAFile) {
  EXPECT_FALSE(made_filters_named("acl.rules")->has_value());
  const MadeFilters whole = **made_filters_named("made:fw:20:9");
  EXPECT_EQ(whole.family, "fw");
  EXPECT_EQ(whole.count, 20U);
  EXPECT_EQ(whole.seed, 9U);
  EXPECT_EQ((*made_filters_named("made:ipc"))->count, MadeFilters{}.count);
  for (const char* wrong :
       {"made:acl:", "made:acl:x", "made:acl:5:", "made:acl:5:6:7", "made:acl:-1"}) {
    const auto named = made_filters_named(wrong);
    ASSERT_FALSE(named) << wrong;
    EXPECT_EQ(named.error().code, ErrorCode::kBadInput);
  }
  for (const MadeFilters& wrong : {MadeFilters{"", 1, 1}, MadeFilters{"of", 1, 1},
                                   MadeFilters{"acl", 0, 1}, MadeFilters{"acl", 1'000'001, 1}}) {
    EXPECT_EQ(made_filters(wrong).error().code, ErrorCode::kBadInput);
  }
}

TEST(ReadRules, SaysOfAnEmptyFileThatItIsEmpty) {
  for (const char* text : {"", "\n  \n"}) {
    const auto read = parse_rules(text, "nothing.rules");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    EXPECT_NE(read.error().message.find("nothing.rules: is empty"), std::string::npos);
  }
}

}  // namespace
}  // namespace greynic::rules
