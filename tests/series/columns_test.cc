#include "greynic/series/columns.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace greynic::series {
namespace {

std::vector<std::uint64_t> kept(const std::vector<std::uint64_t>& values, bool floating,
                                std::size_t* bytes = nullptr) {
  std::string packed;
  pack(values, floating, packed);
  if (bytes != nullptr) *bytes = packed.size();
  packed += "behind";
  std::string_view in = packed;
  auto back = unpack(in, values.size());
  EXPECT_TRUE(back);
  EXPECT_EQ(in, "behind");
  return back.value_or(std::vector<std::uint64_t>());
}

// Claim:  every column comes back to the last bit.
// Method: walks of every step size, noise, edges, doubles with and without decimals, NaN, -0.
TEST(Columns, ComeBackToTheLastBit) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::uint64_t> values(random() % 700 + 1);
    const bool floating = round % 2 == 0;
    const unsigned width = static_cast<unsigned>(random() % 64);
    std::uint64_t walk = random();
    for (std::uint64_t& value : values) {
      const std::uint64_t noise = random() >> width;
      walk += round % 3 == 0 ? noise : round % 3 == 1 ? 0 - noise % 100 : (noise & 1) * noise;
      value = walk;
      if (floating && round % 4 == 0) {
        value = std::bit_cast<std::uint64_t>(static_cast<double>(noise % 100000) / 100 - 300);
      }
    }
    if (round % 7 == 0) values[0] = UINT64_MAX;
    if (round % 11 == 0) values.back() = std::bit_cast<std::uint64_t>(std::nan(""));
    if (round % 13 == 0) values.back() = std::bit_cast<std::uint64_t>(-0.0);
    ASSERT_EQ(kept(values, floating), values) << round;
  }
}

// Claim: what usual counters and gauges do takes few bits.
TEST(Columns, OfUsualMetricsAreSmall) {
  std::mt19937_64 random(8);
  std::vector<std::uint64_t> steady(10000), noisy(10000), load(10000), still(10000, 42);
  std::uint64_t count = 1 << 30;
  for (std::size_t i = 0; i < steady.size(); ++i) {
    steady[i] = 1000 * i;
    noisy[i] = count += 100 + random() % 16;
    load[i] = std::bit_cast<std::uint64_t>(static_cast<double>(random() % 100) / 100);
  }
  std::size_t bytes = 0;
  ASSERT_EQ(kept(steady, false, &bytes), steady);
  EXPECT_LT(bytes, 200U);
  ASSERT_EQ(kept(noisy, false, &bytes), noisy);
  EXPECT_LT(bytes, 10000U);
  ASSERT_EQ(kept(load, true, &bytes), load);
  EXPECT_LT(bytes, 12000U);
  ASSERT_EQ(kept(still, true, &bytes), still);
  EXPECT_LT(bytes, 12U);
}

// Claim: whatever the bytes are, unpacking answers, and takes no more memory than was asked for.
TEST(Columns, AnyBytesAreAnswered) {
  std::mt19937_64 random(9);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 60, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (!bytes.empty()) bytes[0] = static_cast<char>(random() % 5);
    std::string_view in = bytes;
    const auto back = unpack(in, random() % 1000);
    refused += back ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace greynic::series
