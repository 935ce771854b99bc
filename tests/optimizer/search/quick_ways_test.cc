/// Quick ways of growing plans, held against the slow ones that they stand for.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "search/searched.h"
#include "sized.h"
#include "src/chained/field_bits.h"
#include "src/chained/grower.h"
#include "src/chained/node_chain.h"
#include "src/table_cut.h"

namespace greynic::optimizer {
namespace {

using chained::Node;

/// Some rows of a table, with what must keep its order among them.
Node some_rows(const Searched& searched, std::size_t count, std::mt19937_64& random) {
  Node node(searched.units.rows.hull.words());
  const chained::UnitRows& all = searched.units.rows;
  std::uniform_real_distribution<double> weight(0.0, 1.0);
  for (std::size_t row = 0; row < all.size(); ++row) {
    if (random() % all.size() >= count) continue;
    node.rows.add(all.hull.value[row], all.hull.mask[row], all.ports[row], all.unit[row]);
    node.weight.push_back(weight(random));
  }
  node.conflicts = chained::conflicts_of(searched.units, node.rows, node.rows.size());
  return node;
}

// Claim:  where all conflicts of a node are listed, its chain is the one that is made of its rows, with ports written
//         out and without, the heaviest first where there are none; where some are not, they are not taken for all.
// Oracle: the chain for which every two rows are compared.
TEST(Chains, OfListedConflictsAreThoseOfTheirRows) {
  std::mt19937_64 random(5);
  std::size_t with_order = 0;
  std::size_t without = 0;
  for (const std::string family : {"acl", "fw", "ipc"}) {
    const Searched searched(made(family, 400, 3));
    for (std::size_t i = 0; i < sized<std::size_t>(40, 10); ++i) {
      Node node = some_rows(searched, 2 + random() % (i % 4 == 0 ? 3 : 150), random);
      chained::WrittenOut written = chained::written_out(searched.units, node);
      ASSERT_TRUE(written.order.has_value());
      with_order += written.order->empty() ? 0 : 1;
      const Chain quick = chained::chain_of(written);
      written.order.reset();
      const Chain slow = chained::chain_of(written);
      ASSERT_EQ(quick.groups.size(), slow.groups.size()) << family << ' ' << i;
      for (std::size_t group = 0; group < slow.groups.size(); ++group) {
        ASSERT_EQ(quick.groups[group].rows, slow.groups[group].rows) << family << ' ' << i;
      }
      if (node.conflicts.listed.empty()) {
        EXPECT_TRUE(std::ranges::is_sorted(quick.groups, std::ranges::greater{}, &Group::weight));
        ++without;
        continue;
      }
      node.conflicts.some.back() = 1;
      EXPECT_FALSE(chained::written_out(searched.units, node).order.has_value());
    }
  }
  EXPECT_GT(with_order, sized(20U, 10U));
  EXPECT_GT(without, 0U);
}

// Claim:  the bits of a field and of the headers that it needs are those that its mask and add_headers have.
// Oracle: add_headers, on masks.
TEST(FieldBits, AreThoseOfMasks) {
  const char* const kText =
      "table=0,priority=9,tcp,nw_src=10.0.0.0/8,tp_dst=80,actions=drop\n"
      "table=0,priority=8,udp6,ipv6_dst=2001:db8::/64,tp_src=0x1000/0xf000,actions=drop\n"
      "table=0,priority=7,ip,nw_dst=192.168.0.0/18,actions=drop\n"
      "table=0,priority=6,in_port=3,dl_src=00:11:22:33:44:55,actions=drop\n"
      "table=0,priority=5,tcp,tcp_flags=+syn-ack,actions=drop\n";
  const RuleSet rules = rules::parse_rules(kText, "flows", rules::Format::kOpenflow).value();
  Effects effects;
  const Problem problem = make_problem(rules, rules_by_table(rules).begin()->second, effects);
  const chained::FieldBits bits(problem.columns);
  std::mt19937_64 random(1);
  std::size_t with_headers = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t from = random() % problem.rows.size();
    std::vector<Word> row(problem.rows.mask[from], problem.rows.mask[from] + problem.rows.words());
    for (Word& word : row) word &= random() | random();
    const Mask mask = problem.columns.unpack_mask(row.data());
    std::size_t seen = 0;
    for (std::size_t field = 0; field < bits.fields(); ++field) {
      if (!bits.looks_at(row.data(), field)) continue;
      ASSERT_LT(seen, mask.fields().size());
      const FieldMask& entry = mask.fields()[seen++];
      Mask alone;
      alone.add(entry.field, entry.bits);
      add_headers(alone, entry.field, mask);
      with_headers += alone.fields().size() > 1 ? 1 : 0;
      EXPECT_EQ(problem.columns.unpack_mask(bits.with_headers(row.data(), field).data()), alone);
    }
    EXPECT_EQ(seen, mask.fields().size());
  }
  EXPECT_GT(with_headers, 100U);
}

}  // namespace
}  // namespace greynic::optimizer
