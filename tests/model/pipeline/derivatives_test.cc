#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fitting/tape.h"
#include "pipeline/law.h"

namespace greynic::model {
namespace {

// Claim:  a sweep gives the derivatives of what was recorded, of constants none, and again after a
//         cut.
// Oracle: calculus by hand: f = exp(x y) / y + 3 x - log(y).
TEST(Tape, SweepsTheChainRule) {
  Tape tape;
  const Variable x(0.7, &tape, tape.leaf());
  const Variable y(1.9, &tape, tape.leaf());
  const std::size_t leaves = tape.size();
  for (int round = 0; round < 2; ++round) {
    tape.cut(leaves);
    const Variable f = exp(x * y) / y + 3.0 * x - log(y);
    double slopes[2];
    tape.sweep(f.node, slopes);
    const double e = std::exp(0.7 * 1.9);
    EXPECT_NEAR(f.value, e / 1.9 + 2.1 - std::log(1.9), 1e-14);
    EXPECT_NEAR(slopes[0], e + 3.0, 1e-13);
    EXPECT_NEAR(slopes[1], 0.7 * e / 1.9 - e / (1.9 * 1.9) - 1.0 / 1.9, 1e-13);
  }
  const Variable constant = Variable(2.0) * Variable(3.0);
  EXPECT_EQ(constant.tape, nullptr);
  EXPECT_EQ(tape.size(), leaves + 7);  // one for each operation on a variable
}

// Claim:  the law's derivatives are those of its values, at settings that meet every term.
// Oracle: central differences of the law in plain numbers.
// Method: 300 random settings of random devices. The law has corners, where one formula takes over
//         from another; a setting that stands on one may miss, one in a hundred at most.
TEST(PipelineLaw, HasTheDerivativesOfItsValues) {
  using namespace pipeline;
  constexpr std::uint64_t kSeed = 8;
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  const auto pick = [&](std::initializer_list<double> from) {
    return *(from.begin() + static_cast<long>(random() % from.size()));
  };
  int asked = 0;
  int missed = 0;
  for (int i = 0; i < 300; ++i) {
    Values values = typical();
    for (double& value : values) value += 0.3 * normal(random);
    Setting s;
    s.operation = static_cast<Operation>(random() % 4);
    s.bytes = pick({8, 700, 4096, 65536, 1 << 20});
    s.qps = pick({1, 4, 64, 2000, 8000});
    s.depth = pick({1, 128});
    s.threads = pick({1, 4, 32});
    s.batch = pick({1, 16});
    s.mr_pages = pick({1, 1e5, 1e7});
    s.vxlan_contexts = pick({1, 1e5});
    s.flow_setup_rate = pick({0, 1000});
    for (double& masks : s.masks) masks = pick({0, 5, 40});
    for (const Output output : {kLogBandwidth, kLogLatency}) {
      Values gradient;
      EXPECT_NEAR(LawAt(values).at(output, s, gradient), LawAt(values).at(output, s), 1e-9);
      for (int j = 0; j < kParameterCount; ++j) {
        constexpr double kStep = 1e-6;
        Values up = values;
        Values down = values;
        up[j] += kStep;
        down[j] -= kStep;
        const double slope = (LawAt(up).at(output, s) - LawAt(down).at(output, s)) / (2.0 * kStep);
        ++asked;
        missed += std::abs(gradient[j] - slope) > 1e-4 + 1e-3 * std::abs(slope) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(asked, 20'000);
  EXPECT_LE(missed, asked / 100) << "seed " << kSeed;
}

}  // namespace
}  // namespace greynic::model
