// Advice from a law that is planted, so that the best choice and its gain are known.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/sharing/sharing.h"

namespace greynic::sharing {
namespace {

/// A line of 100 Gbit/s; a message takes 1 ns a QP longer beyond 400 QPs; a thread posts in 100 ns,
/// but when the driver's doorbells are shared, in 100 ns for each thread.
class Planted : public model::Model {
 public:
  explicit Planted(double width = 0.0, double most_bytes = 1 << 30)
      : width_(width), most_bytes_(most_bytes) {}
  [[nodiscard]] std::string law() const override { return "planted"; }
  [[nodiscard]] std::vector<std::string> inputs() const override { return {"qp_count"}; }
  [[nodiscard]] std::string to_json_text() const override { return "{}"; }
  [[nodiscard]] Result<model::Prediction> predict(const Configuration& at) const override {
    const auto number = [&](const char* name) { return std::get<double>(*at.find(name)); };
    const double bytes = number("message_bytes"), threads = number("thread_count");
    const bool dedicated = to_string(*at.find("doorbell_sharing")) == "dedicated";
    const double line_ns = bytes * 0.08 + std::max(0.0, number("qp_count") - 400);
    const double post_ns = 100 / (dedicated ? threads : 1.0);
    const double gbps = bytes * 8 / std::max(line_ns, post_ns);
    model::Prediction prediction;
    prediction.distance = std::max(0.0, bytes / most_bytes_ - 1);
    prediction.extrapolated = prediction.distance > 0;
    prediction.measures["bandwidth_gbps"] = {gbps, gbps * (1 - width_), gbps * (1 + width_)};
    prediction.measures["latency_us_p50"] = {1.0, 1.0, 1.0};
    return prediction;
  }

 private:
  double width_, most_bytes_;
};

Matrix one_kind(std::uint32_t connections, std::uint64_t bytes, std::uint32_t threads = 1) {
  return {.demands = {{.from = "a", .to = "b", .connections = connections, .message_bytes = bytes}},
          .threads = threads};
}

// Claim:  beyond the wall sharing is advised, and its gain is what the law says.
// Oracle: 8192 B take 655.36 ns on the line; with 1400 QPs 1000 ns more.
TEST(Advice, SharesBeyondTheWall) {
  const auto advice = advise(Planted(), one_kind(1400, 8192));
  ASSERT_TRUE(advice) << advice.error().message;
  EXPECT_EQ(advice->choice, Choice::kShare);
  EXPECT_NEAR(advice->gain.value, 1655.36 / 655.36, 1e-6);
  EXPECT_EQ(advice->own_qps, 1400U);
  EXPECT_EQ(advice->advised_qps, advice->setting.latency_qps + advice->setting.bulk_qps);
}

// Claim:  where sharing gains nothing, things stay as they are.
TEST(Advice, DoesNotShareBelowTheWall) {
  const auto advice = advise(Planted(), one_kind(300, 8192));
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->choice, Choice::kOwn);
  EXPECT_EQ(advice->gain.value, 1.0);
  EXPECT_EQ(advice->own_qps, advice->advised_qps);
}

// Claim:  a broker's one thread is no match for eight with doorbells of their own.
// Oracle: with the driver's doorbells a message takes 100 ns, with own ones 12.5 ns; a broker takes
//         100 ns and its own 100 ns.
TEST(Advice, GivesThreadsDoorbellsWhereTheyWaitForThem) {
  const auto advice = advise(Planted(), one_kind(300, 64, 8));
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->choice, Choice::kOwnDoorbells);
  EXPECT_NEAR(advice->gain.value, 8.0, 1e-6);
  EXPECT_NEAR(advice->if_shared.value, 0.5, 1e-6);
}

// Claim:  a gain that is no larger than what the law may be wrong by is not advised.
// Oracle: 30 and 130 QPs beyond the wall add 4.6 % and 19.8 % to a message of 655.36 ns.
TEST(Advice, IsSilentWhereTheGainIsSmall) {
  EXPECT_EQ(advise(Planted(), one_kind(430, 8192))->choice, Choice::kOwn);
  EXPECT_EQ(advise(Planted(), one_kind(530, 8192))->choice, Choice::kShare);
}

// Claim:  the interval of a gain is that of two independent errors.
// Oracle: a tenth either way of both, combined by their logarithms.
TEST(Advice, GivesAnInterval) {
  const auto advice = advise(Planted(0.1), one_kind(1400, 8192));
  ASSERT_TRUE(advice);
  const double width = std::hypot(std::log(0.9), std::log(1.1));
  EXPECT_NEAR(std::log(advice->gain.value / advice->gain.low), width, 1e-9);
  EXPECT_NEAR(std::log(advice->gain.high / advice->gain.value), width, 1e-9);
}

// Claim:  of several models the one is asked that knows the sizes.
TEST(Advice, AsksTheModelThatKnowsTheSize) {
  std::vector<std::unique_ptr<model::Model>> models;
  models.push_back(std::make_unique<Planted>(0.0, 1024));
  models.push_back(std::make_unique<Planted>(0.1, 1 << 20));
  const auto both = nearest_of(std::move(models));
  EXPECT_EQ(advise(*both, one_kind(1400, 512))->gain.low,
            advise(*both, one_kind(1400, 512))->gain.value);
  EXPECT_LT(advise(*both, one_kind(1400, 8192))->gain.low,
            advise(*both, one_kind(1400, 8192))->gain.value);
}

// Claim:  long messages have QPs of their own only where there are short ones.
TEST(Advice, SplitsClassesWhereSizesDiffer) {
  Matrix matrix = one_kind(1400, 65536);
  EXPECT_EQ(advise(Planted(), matrix)->setting.bulk_qps, 0U);
  matrix.demands.push_back(matrix.demands.front());
  matrix.demands.back().message_bytes = 64;
  EXPECT_GE(advise(Planted(), matrix)->setting.bulk_qps, 1U);
}

// Claim:  a broker reads what the advice says.
TEST(Advice, IsReadBack) {
  const Matrix matrix = one_kind(1400, 8192);
  const auto advice = advise(Planted(), matrix);
  ASSERT_TRUE(advice);
  const auto path = std::filesystem::path(testing::TempDir()) / "greynic_advice_test.json";
  std::ofstream(path) << to_json_text(*advice, matrix);
  const auto read = read_advice(path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->choice, Choice::kShare);
  EXPECT_EQ(read->setting.in_flight_bytes, advice->setting.in_flight_bytes);
  EXPECT_EQ(read->setting.bulk_bytes, advice->setting.bulk_bytes);
}

// Claim:  the example that is shipped is read as it stands.
TEST(ConnectionMatrix, OfTheExampleIsRead) {
  const auto matrix = read_matrix(GREYNIC_SOURCE_DIR "/configs/examples/connections.json");
  ASSERT_TRUE(matrix) << matrix.error().message;
  ASSERT_EQ(matrix->demands.size(), 2U);
  EXPECT_EQ(matrix->demands[0].connections, 900U);
  EXPECT_EQ(matrix->demands[1].outstanding, 4U);
  EXPECT_EQ(matrix->threads, 4U);
}

}  // namespace
}  // namespace greynic::sharing
