#include "greynic/language/mask_group.h"

#include <gtest/gtest.h>

#include <set>

#include "greynic/check/array_check.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {
namespace {

using language::CoverModel;

using enum MatchField;

/// The mask that a row says for a group.
Mask mask_of(const MaskGroup& group, const CoverModel& model, const std::vector<int>& row) {
  const auto factors = mask_factors(group).value();
  Configuration configuration;
  for (const MaskFactor& made : factors) {
    const auto level = static_cast<std::size_t>(row[*model.find(made.factor.name)]);
    configuration.set(made.factor.name, made.factor.levels[level]);
  }
  return match_of(group, configuration).mask();
}

/// Whether a mask looks at some bit of a field.
bool looks_at(const Mask& mask, MatchField field) { return mask.bits(field) != 0; }

// Claim:  no mask of the array looks at a field without the headers that it needs, and headers that
//         exclude each other never meet.
// Oracle: the dependencies of IPv4, IPv6, UDP and VXLAN written by hand.
TEST(MaskGroup, NeverLooksAtAFieldWithoutItsHeader) {
  const MaskGroup group{
      "m",
      {kEtherType, kIpv4Dst, kIpv6Dst, kIpProtocol, kL4DstPort, kVxlanVni, kInnerIpv4Dst, kInPort},
      MaskBits::kPrefix};
  CoverModel model;
  model.source = "mask";
  ASSERT_TRUE(add_mask_group(group, model));
  const auto cover = cover_model(model, {});
  ASSERT_TRUE(cover) << cover.error().message;
  std::set<std::string> seen;
  for (const auto& row : cover->rows) {
    const Mask mask = mask_of(group, model, row);
    seen.insert(to_string(mask));
    EXPECT_FALSE(looks_at(mask, kIpv4Dst) && looks_at(mask, kIpv6Dst));
    if (looks_at(mask, kIpv4Dst) || looks_at(mask, kIpv6Dst) || looks_at(mask, kIpProtocol)) {
      EXPECT_EQ(mask.bits(kEtherType), full_mask(kEtherType));
    }
    if (looks_at(mask, kL4DstPort)) {
      EXPECT_EQ(mask.bits(kIpProtocol), full_mask(kIpProtocol));
    }
    if (looks_at(mask, kVxlanVni) || looks_at(mask, kInnerIpv4Dst)) {
      EXPECT_EQ(mask.bits(kL4DstPort), full_mask(kL4DstPort));
    }
  }
  EXPECT_GT(seen.size(), 10U);
  EXPECT_TRUE(check::check_array(model, cover->rows, 2).good());
}

// Claim:  with bits each, a factor says of one bit whether the mask has it.
TEST(MaskGroup, MakesAFactorOfEachBit) {
  const MaskGroup group{"m", {kIpv4Src, kIpDscp}, MaskBits::kEach};
  CoverModel model;
  ASSERT_TRUE(add_mask_group(group, model));
  ASSERT_EQ(model.parameters.size(), 38U);
  std::vector<int> row(38, 0);
  row[*model.find("m.ipv4_src.31")] = 1;
  row[*model.find("m.ip_dscp.0")] = 1;
  const Mask mask = mask_of(group, model, row);
  EXPECT_EQ(mask.bits(kIpv4Src), U128{1} << 31);
  EXPECT_EQ(mask.bits(kIpDscp), U128{1});
  EXPECT_FALSE(add_mask_group(group, model));
  EXPECT_FALSE(add_mask_group({"n", {kIpv4Src, kIpv4Src}, MaskBits::kWhole}, model));
}

// Claim:  fields that are never in one packet are refused unless the group has the field that tells
//         which is there.
TEST(MaskGroup, AsksForTheHeaderThatDecides) {
  const auto blind = mask_factors({"m", {kIpv4Dst, kIpv6Dst}, MaskBits::kPrefix});
  ASSERT_FALSE(blind);
  EXPECT_NE(blind.error().message.find("add ether_type"), std::string::npos);
  EXPECT_TRUE(mask_factors({"m", {kEtherType, kIpv4Dst, kIpv6Dst}, MaskBits::kPrefix}));
  EXPECT_TRUE(mask_factors({"m", {kIpv4Src, kIpv4Dst, kIpTtl}, MaskBits::kPrefix}));
}

// Claim:  with an order, all permutations of the groups and no other places are valid.
TEST(MaskGroup, OrdersGroupsByPermutations) {
  CoverModel model;
  ASSERT_TRUE(add_mask_order(std::vector<MaskGroup>{{"a", {}}, {"b", {}}, {"c", {}}}, model));
  int valid = 0;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 3; ++c) {
        const bool permutation = a != b && b != c && a != c;
        EXPECT_EQ(is_valid(model, {a, b, c}), permutation);
        valid += permutation ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(valid, 6);
}

}  // namespace
}  // namespace greynic::testgen
