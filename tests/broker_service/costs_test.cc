// What is copied and what registered, by what either costs.

#include <gtest/gtest.h>

#include "client/src/lending.h"
#include "service/src/crossover.h"

namespace greynic::broker {
namespace {

using client::Lending;

// Claim:  the crossover is where the line of registering meets that of copying.
// Oracle: 20 us and 50 ns a page, against 450 ns a page: they meet at 50 pages.
TEST(Crossover, IsWhereTheLinesMeet) {
  const local::Costs costs = costs_of(32, 20000 + 32 * 50, 20000 + 256 * 50, 32 * 450);
  EXPECT_EQ(costs.register_ns, 20000U);
  EXPECT_EQ(costs.register_page_ns, 50U);
  EXPECT_EQ(costs.copy_page_ns, 450U);
  EXPECT_EQ(crossover_bytes(costs), 50U * 4096);
  EXPECT_FALSE(crossover_bytes(costs_of(32, 20000, 200000, 32 * 450))) << "a page costs more";
  EXPECT_FALSE(crossover_bytes(costs_for_crossover(std::nullopt)));
  EXPECT_EQ(crossover_bytes(costs_for_crossover(1U << 20)), 1U << 20);
  EXPECT_EQ(crossover_bytes(costs_for_crossover(0)), 0U);
  // A clock that ran unevenly.
  EXPECT_GE(costs_of(32, 5000, 4000, 0).copy_page_ns, 1U);
}

// Claim:  what is sent once is registered from the crossover on; what is sent often, once copying it
//         has cost as much; so the price is at most twice that of who knows the future.
// Oracle: sums of both prices.
TEST(Lending, CostsAtMostTwiceWhatForesightWould) {
  const local::Costs costs{20000, 50, 450};
  std::array<char, 1> memory{};
  for (std::uint64_t pages = 1; pages <= 200; ++pages) {
    const std::size_t bytes = pages * 4096;
    for (const int times : {1, 2, 5, 20, 1000}) {
      Lending lending(costs);
      std::uint64_t paid = 0;
      const std::uint64_t copying = pages * 450, registering = 20000 + pages * 50;
      for (int i = 0; i < times; ++i) {
        const auto choice = lending.choose(memory.data(), bytes);
        if (choice == Lending::Choice::kCopy) paid += copying;
        if (choice == Lending::Choice::kRegister) paid += registering;
      }
      if (bytes < Lending::kLeastBytes) continue;
      const std::uint64_t best = std::min(registering, copying * static_cast<std::uint64_t>(times));
      EXPECT_LE(paid, 2 * best) << pages << " pages, " << times << " times";
      if (times == 1 && pages >= 50) EXPECT_EQ(paid, registering) << pages;
      if (times == 1 && pages < 50) EXPECT_EQ(paid, copying) << pages;
    }
  }
}

TEST(Lending, StartsAnewForWhatWasForgottenOrIsLonger) {
  Lending lending(local::Costs{1000, 0, 100});
  std::array<char, 2> memory{};
  using Choice = Lending::Choice;
  EXPECT_EQ(lending.choose(&memory[0], 16384), Choice::kCopy);
  EXPECT_EQ(lending.choose(&memory[1], 16384), Choice::kCopy) << "another place";
  EXPECT_EQ(lending.choose(&memory[0], 16384), Choice::kCopy);
  EXPECT_EQ(lending.choose(&memory[0], 16384), Choice::kRegister);
  EXPECT_EQ(lending.choose(&memory[0], 16384), Choice::kReuse);
  EXPECT_EQ(lending.choose(&memory[0], 20480), Choice::kCopy) << "longer than what is registered";
  lending.was_forgotten(&memory[0]);
  EXPECT_EQ(lending.choose(&memory[0], 16384), Choice::kCopy);
  EXPECT_EQ(lending.choose(&memory[0], 1 << 20), Choice::kRegister);
  EXPECT_EQ(lending.choose(&memory[0], 16383), Choice::kCopy) << "too short to wait for";
  EXPECT_EQ(Lending().choose(&memory[0], 1 << 30), Choice::kCopy) << "never";
}

}  // namespace
}  // namespace greynic::broker
