/// Quick lookups among ternary rows, held against slow ones.

#include "src/ternary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "sized.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kWords = 2;

/// Rows that look at some of 12 columns in each word, under so many masks.
Ternaries random_rows(std::size_t count, std::size_t masks, std::mt19937_64& random) {
  std::vector<std::array<Word, kWords>> looks_at(masks);
  for (auto& mask : looks_at) {
    for (Word& word : mask) word = random() & random() & 0xfff;
  }
  Ternaries rows(kWords);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& mask = looks_at[random() % masks];
    std::array<Word, kWords> value{};
    for (std::size_t w = 0; w < kWords; ++w) value[w] = random() & mask[w];
    rows.add(value.data(), mask.data());
  }
  return rows;
}

// Claim:  the first row that matches a packet is found, with few masks and with many, in any order.
// Oracle: a scan of all rows.
// Method: rows in random order and sorted by mask, as the matchers of a layout are; many are alike.
TEST(FirstMatches, AreThoseOfAScan) {
  std::mt19937_64 random(5);
  for (const std::size_t masks : {1, 5, 32, 33, 400, 600}) {
    for (const std::size_t count : {13, 200, 2500}) {
      const Ternaries rows = random_rows(count, masks, random);
      Rows packets(kWords);
      for (std::size_t i = 0; i < sized(300, 60); ++i) {
        for (Word *packet = packets.add(), *end = packet + kWords; packet != end; ++packet) {
          *packet = random() & 0xfff;
        }
      }
      const auto found = first_matches(rows, packets);
      for (std::size_t i = 0; i < packets.size(); ++i) {
        std::uint32_t first = 0;
        while (first < rows.size() &&
               !matches(rows.value[first], rows.mask[first], packets[i], kWords)) {
          ++first;
        }
        ASSERT_EQ(found[i], first < rows.size() ? first : kNoRow)
            << masks << " masks, " << count << " rows";
      }
    }
  }
}

// Claim:  of a column's two sides the smaller one counts four times; the column where that is most splits best.
// Oracle: each column counted by itself.
TEST(BestSplit, IsThatOfCountingEachColumn) {
  std::mt19937_64 random(6);
  for (std::size_t round = 0; round < 200; ++round) {
    const std::size_t count = 1 + random() % 255;  // all of them are looked at
    const Ternaries rows = random_rows(count, 1 + random() % 20, random);
    std::vector<std::uint32_t> members(count);
    for (std::uint32_t i = 0; i < count; ++i) members[i] = i;
    const std::vector<Word> decided = {random() & 0xff, 0};
    int best = -1;
    std::size_t best_score = 0;
    for (std::size_t column = 0; column < kWords * 64; ++column) {
      const Word bit = Word{1} << column % 64;
      if ((decided[column / 64] & bit) != 0) continue;
      std::array<std::size_t, 2> sides{};
      for (const std::uint32_t row : members) {
        if ((rows.mask[row][column / 64] & bit) == 0) continue;
        ++sides[(rows.value[row][column / 64] & bit) != 0 ? 1 : 0];
      }
      const std::size_t score = std::min(sides[0], sides[1]) * 4 + std::max(sides[0], sides[1]);
      if (score <= best_score) continue;
      best_score = score;
      best = static_cast<int>(column);
    }
    EXPECT_EQ(best_split(rows, members, decided), best) << count << " rows";
  }
}

}  // namespace
}  // namespace greynic::optimizer
