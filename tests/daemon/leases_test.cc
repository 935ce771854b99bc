#include "greynic/daemon/leases.h"

#include <gtest/gtest.h>

#include <set>

namespace greynic::daemon {
namespace {

using std::chrono::seconds;
const Leases::Clock::time_point kBegin{};

// Claim:  a lease ends when nothing is heard for its length, counted from the last word; time is
//         handed in, so no clock is waited for.
TEST(Leases, EndByThemselves) {
  Leases leases({.most = 3, .most_of_one = 3, .longest = seconds(100)});
  const std::uint64_t id = leases.grant("alice", seconds(10), kBegin).value().value();
  EXPECT_TRUE(leases.expired(kBegin + seconds(10)).empty());
  ASSERT_NE(leases.renew(id, "alice", kBegin + seconds(9)), nullptr);
  EXPECT_TRUE(leases.expired(kBegin + seconds(19)).empty());
  EXPECT_EQ(leases.expired(kBegin + seconds(20)), std::vector{id});
  leases.end(id);
  EXPECT_EQ(leases.size(), 0U);
  EXPECT_EQ(leases.renew(id, "alice", kBegin), nullptr);
}

// Claim:  an id is worth nothing to anyone but its owner.
TEST(Leases, BelongToTheirOwner) {
  Leases leases({.most = 3, .most_of_one = 3});
  const std::uint64_t id = leases.grant("alice", seconds(10), kBegin).value().value();
  EXPECT_EQ(leases.renew(id, "mallory", kBegin), nullptr);
  EXPECT_EQ(leases.renew(id, "", kBegin), nullptr);
  EXPECT_NE(leases.renew(id, "alice", kBegin), nullptr);
}

// Claim:  their number and length are bounded, in all and for one owner; all taken is no error.
TEST(Leases, AreBounded) {
  Leases leases({.most = 3, .most_of_one = 2, .longest = seconds(100)});
  EXPECT_FALSE(leases.grant("alice", seconds(0), kBegin));
  EXPECT_FALSE(leases.grant("alice", seconds(-1), kBegin));
  EXPECT_FALSE(leases.grant("alice", seconds(101), kBegin));
  ASSERT_TRUE(leases.grant("alice", seconds(100), kBegin).value());
  ASSERT_TRUE(leases.grant("alice", seconds(1), kBegin).value());
  EXPECT_FALSE(leases.grant("alice", seconds(1), kBegin));
  ASSERT_TRUE(leases.grant("bob", seconds(1), kBegin).value());
  const auto full = leases.grant("carol", seconds(1), kBegin);
  ASSERT_TRUE(full);
  EXPECT_FALSE(full->has_value());
}

// Claim:  what is cut short stays so, and a word of the owner gives the whole length again.
TEST(Leases, AreShortened) {
  Leases leases({});
  const std::uint64_t id = leases.grant("alice", seconds(100), kBegin).value().value();
  leases.shorten(id, kBegin + seconds(5));
  leases.shorten(id, kBegin + seconds(50));
  EXPECT_EQ(leases.expired(kBegin + seconds(6)), std::vector{id});
  (void)leases.renew(id, "alice", kBegin + seconds(6));
  EXPECT_TRUE(leases.expired(kBegin + seconds(106)).empty());
}

// Claim:  ids do not follow one another.
// Oracle: of 10,000 ids none comes twice, and every bit of them is set about as often as not: in
//         5,000 +- 400, which chance leaves once in 10^14 tries.
TEST(UnguessableIds, LookLikeChance) {
  std::set<std::uint64_t> seen;
  std::array<int, 64> set{};
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t id = unguessable_id();
    EXPECT_TRUE(seen.insert(id).second);
    for (std::size_t bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>((id >> bit) & 1U);
  }
  for (const int count : set) EXPECT_NEAR(count, 5000, 400);
}

}  // namespace
}  // namespace greynic::daemon
