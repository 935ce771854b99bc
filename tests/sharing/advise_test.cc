// Advice from a law that is planted, so that the best choice and its gain are known.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/sharing/sharing.h"
#include "network.h"
#include "sized.h"

namespace greynic::sharing {
namespace {

/// Share of misses of contexts that are used in turn, where random ones make place.
double misses(double qps) {
  static std::map<double, double> known;
  const auto [entry, is_new] = known.try_emplace(qps);
  if (is_new) {
    double hit = 0;
    for (int i = 0; i < 1000; ++i) hit = std::exp((hit - 1) * qps / 400);
    entry->second = 1 - hit;
  }
  return entry->second;
}

/// A line of 100 Gbit/s; 400 contexts on the chip, and 1 us for each that is fetched, once for four
/// packets; a thread posts in 100 ns, but when the driver's doorbells are shared, in 100 ns for each
/// thread; 2 us there and back beside the line, and `fetch_us` more where a payload has to be fetched.
class Planted : public model::Model {
 public:
  explicit Planted(double width = 0.0, double most_bytes = 1 << 30, double half_trip_us = 1,
                   double fetch_us = 0)
      : width_(width), most_bytes_(most_bytes), half_trip_us_(half_trip_us), fetch_us_(fetch_us) {}
  [[nodiscard]] std::string law() const override { return "planted"; }
  [[nodiscard]] std::vector<std::string> inputs() const override { return {"qp_count"}; }
  [[nodiscard]] std::string to_json_text() const override { return "{}"; }
  [[nodiscard]] Result<model::Prediction> predict(const Configuration& at) const override {
    const auto number = [&](const char* name) { return std::get<double>(*at.find(name)); };
    const double bytes = number("message_bytes"), threads = number("thread_count");
    const bool dedicated = to_string(*at.find("doorbell_sharing")) == "dedicated";
    const double line_ns = bytes * 0.08;
    const double fetch_ns = 1000 * std::ceil(bytes / 4096) * misses(number("qp_count"));
    const double post_ns = 100 / (dedicated ? threads : 1.0);
    const double gbps = bytes * 8 / std::max({line_ns, fetch_ns, post_ns});
    // The whole of a READ, half of two WRITEs, of which small ones come with their request.
    const bool read = to_string(*at.find("operation")) == "READ";
    const double half_us = half_trip_us_ + line_ns / 2e3;
    const double trip_us =
        read ? 2 * half_us : half_us + line_ns / 2e3 + (bytes > 64 ? fetch_us_ : 0);
    model::Prediction prediction;
    prediction.distance = std::max(0.0, bytes / most_bytes_ - 1);
    prediction.extrapolated = prediction.distance > 0;
    prediction.measures["bandwidth_gbps"] = {gbps, gbps * (1 - width_), gbps * (1 + width_)};
    prediction.measures["latency_us_p50"] = {trip_us, trip_us, trip_us};
    return prediction;
  }

 private:
  double width_, most_bytes_, half_trip_us_, fetch_us_;
};

Matrix one_kind(std::uint32_t connections, std::uint64_t bytes, std::uint32_t threads = 1) {
  return {.demands = {{.from = "a", .to = "b", .connections = connections, .message_bytes = bytes}},
          .threads = threads};
}

// Claim:  beyond the wall sharing is advised, and its gain is what the law says.
// Oracle: 8192 B take 655.36 ns on the line; with 1400 QPs two fetches, of which nearly all miss.
TEST(Advice, SharesBeyondTheWall) {
  const auto advice = advise(Planted(), one_kind(1400, 8192));
  ASSERT_TRUE(advice) << advice.error().message;
  EXPECT_EQ(advice->choice, Choice::kShare);
  const double gain = 2000 * misses(1400) / 655.36;
  EXPECT_NEAR(advice->gain.value, gain, 0.05 * gain);
  EXPECT_EQ(advice->own_qps, 1400U);
  EXPECT_EQ(advice->advised_qps, advice->setting.latency_qps + advice->setting.bulk_qps);
}

// Claim:  QPs of both directions fill one chip: what neither would do alone, both do.
// Oracle: 300 of 400 contexts are one direction's; 600 miss.
TEST(Advice, CountsBothDirectionsOfAHost) {
  Matrix matrix = one_kind(300, 8192);
  EXPECT_EQ(advise(Planted(), matrix)->choice, Choice::kOwn);
  matrix.demands.push_back(matrix.demands.front());
  std::swap(matrix.demands.back().from, matrix.demands.back().to);
  const auto advice = advise(Planted(), matrix);
  EXPECT_EQ(advice->choice, Choice::kShare);
  EXPECT_GT(advice->gain.value, 2 * misses(600) * 1000 / 655.36) << "each end fetches for two";
}

// Claim:  a host that only receives over many QPs, from senders that have few each, has no wall there.
// Oracle: it fetches half of what a sender does: 2 x 500 ns x miss, which is less than the line takes.
TEST(Advice, KnowsThatSendersFetchMore) {
  Matrix matrix;
  for (const char* sender : {"a", "b", "c"}) {
    matrix.demands.push_back({.from = sender,
                              .to = "z",
                              .connections = 200,
                              .operation = Operation::kWrite,
                              .message_bytes = 8192});
  }
  EXPECT_LT(1000 * misses(600), 655.36);
  EXPECT_EQ(advise(Planted(), matrix)->choice, Choice::kOwn);
}

// Claim:  a READ's request has a turn among the WRITEs of its host, so few READs get little.
// Oracle: in a round of the port 320 QPs send 4 KiB each, which takes 327.68 ns; a READ waits for one.
TEST(Advice, LetsRequestsWaitForTheirTurn) {
  Matrix matrix = one_kind(20, 4096);
  matrix.demands.push_back({.from = "a", .to = "c", .connections = 320, .message_bytes = 16384});
  matrix.demands.back().operation = Operation::kWrite;
  const auto advice = advise(Planted(), matrix);
  ASSERT_TRUE(advice);
  const double read_gbps = 20 * 4096 * 8 / (320 * 327.68);
  EXPECT_NEAR(advice->demands[0].own_gbps, read_gbps, 0.2 * read_gbps);
  EXPECT_NEAR(advice->demands[1].own_gbps, 100, 3);
}

// Claim:  a shared QP has 16 READs open, so far hosts want several.
// Oracle: 40 us there and back, so eight QPs with 16 READs each carry 3.2 messages in 1 us, where a
//         broker's thread could post 7.7.
TEST(Advice, KnowsThatAQpHasFewReadsOpen) {
  const auto many = advise(Planted(0.0, 1 << 30, 20), one_kind(1400, 64));
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(many->choice, Choice::kShare);
  EXPECT_EQ(many->setting.latency_qps, 8U);
  const double gbps = 8 * 16 / 40e-6 * 64 * 8 * 1e-9;
  EXPECT_NEAR(many->demands[0].advised_gbps, gbps, 0.1 * gbps);
}

// Claim:  requests that wait for a place among the 16 READs are fetched meanwhile.
// Oracle: 40 us there and back, so 16 READs each 40 us; were each fetched only when its turn comes, it would be
//         each 60 us.
TEST(Advice, FetchesRequestsWhileTheyWait) {
  Matrix matrix = one_kind(1, 64);
  matrix.demands[0].outstanding = 64;
  const auto one = advise(Planted(0.0, 1 << 30, 20, 20), matrix);
  ASSERT_TRUE(one) << one.error().message;
  const double gbps = 16 / 40e-6 * 64 * 8 * 1e-9;
  EXPECT_NEAR(one->demands[0].own_gbps, gbps, 0.05 * gbps);
}

// Claim:  a host that waits for contexts pauses its own port: who answers it goes on sending to others.
// Oracle: the WRITEs alone. Their host answers READs of a host that cannot take the answers as fast; it fetches
//         contexts for them, which costs the WRITEs a part.
TEST(Advice, LetsAPausedHostHoldNobodyElse) {
  const Demand writes{.from = "b",
                      .to = "c",
                      .connections = 15,
                      .operation = Operation::kWrite,
                      .message_bytes = 4096};
  const Demand reads{
      .from = "a", .to = "b", .connections = 900, .message_bytes = 256, .outstanding = 2};
  const auto alone = play(Planted(), {.demands = {writes}, .threads = 1}, {});
  const auto beside = play(Planted(), {.demands = {writes, reads}, .threads = 1}, {});
  ASSERT_TRUE(alone && beside);
  EXPECT_GT(beside->at(0), 0.7 * alone->at(0));
}

// Claim:  a switch stops who fills it: a host of whose answers it holds little goes on, whoever else fills the port
//         that some of them go to.
// Oracle: 24 x 4 READs of 8 KiB are 786 kB, and a switch stops a sender at 800 kB; the other answers go
//         to a host that nobody else sends to. So "b" sends all that its line carries.
TEST(Advice, StopsOnlyWhoFillsTheSwitch) {
  const auto reads = [](const char* from, const char* to, std::uint32_t connections,
                        std::uint64_t bytes, std::uint32_t outstanding) {
    return Demand{.from = from,
                  .to = to,
                  .connections = connections,
                  .message_bytes = bytes,
                  .outstanding = outstanding};
  };
  const auto advice =
      advise(Planted(), {.demands = {reads("a", "c", 14, 32768, 16), reads("a", "b", 24, 8192, 4),
                                     reads("d", "b", 10, 16384, 2)},
                         .threads = 4});
  ASSERT_TRUE(advice) << advice.error().message;
  EXPECT_GT(advice->demands[1].own_gbps + advice->demands[2].own_gbps, 90);
}

// Claim:  two units take turns at a full line by the packet, however many of a message one of them has.
// Oracle: one of two QPs has packets of 1 KiB in messages of 16, the other in messages of two: half of the line each.
TEST(Advice, SharesALineByThePacket) {
  const auto writes = [](const char* to, std::uint64_t bytes) {
    return Demand{.from = "a",
                  .to = to,
                  .connections = 1,
                  .operation = Operation::kWrite,
                  .message_bytes = bytes,
                  .outstanding = 64};
  };
  const auto advice =
      advise(Planted(), {.demands = {writes("b", 16384), writes("c", 2048)}, .threads = 2});
  ASSERT_TRUE(advice) << advice.error().message;
  EXPECT_NEAR(advice->demands[0].own_gbps, 50, 5);
  EXPECT_NEAR(advice->demands[1].own_gbps, 50, 5);
}

// Claim:  a port that is asked for a little more than it passes on is looked at when it is full.
// Oracle: words of WRITEs to "b" are what is too much at the port of "a". Then they wait behind the 700 to 800 kB
//         of one host that a switch holds, at 100 Gbit/s, and each of eight messages of 16 KiB so long.
TEST(Advice, WaitsUntilAPortIsFull) {
  Demand aside{.from = "a",
               .to = "b",
               .connections = 4,
               .operation = Operation::kWrite,
               .message_bytes = 16384,
               .outstanding = 2};
  Demand filling{.from = "c",
                 .to = "a",
                 .connections = 95,
                 .operation = Operation::kWrite,
                 .message_bytes = 32768,
                 .outstanding = 2};
  const auto advice = advise(Planted(), {.demands = {aside, filling}, .threads = 4});
  ASSERT_TRUE(advice) << advice.error().message;
  const double wait_ns = 750e3 * 8 / 100;
  EXPECT_NEAR(advice->demands[0].own_gbps, 8 * 16384 * 8 / wait_ns, 2.5);
}

// Claim:  QPs of small messages and of bulk are dealt out to both units.
// Oracle: the first of each class are made first, then seven for small messages, then seven for bulk. So the two
//         connections of small messages, on the first and third of a host's QPs, are on a unit with three QPs of bulk:
//         two turns in five, of half of the line. Were they alone on that unit, they would have the half.
TEST(Advice, DealsQpsOfBothClassesOut) {
  Matrix matrix = one_kind(2, 4096);
  matrix.demands[0].operation = Operation::kWrite;
  matrix.demands[0].outstanding = 64;
  matrix.demands.push_back(matrix.demands.front());
  matrix.demands.back().connections = 64;
  matrix.demands.back().message_bytes = 65536;
  const Setting setting{
      .latency_qps = 8, .bulk_qps = 8, .bulk_bytes = 8192, .in_flight_bytes = 1 << 20};
  const auto gbps = play(Planted(), matrix, {.shared = setting});
  ASSERT_TRUE(gbps) << gbps.error().message;
  EXPECT_NEAR(gbps->at(0), 20, 2);
  EXPECT_NEAR(gbps->at(1), 80, 8);
}

/// The same, but what one QP sends passes one of sixteen units, each of which takes 320 ns for a packet.
class ManyUnits : public Planted {
 public:
  [[nodiscard]] Result<model::Prediction> predict(const Configuration& at) const override {
    auto prediction = Planted::predict(at);
    const auto number = [&](const char* name) { return std::get<double>(*at.find(name)); };
    const double packets = std::max(1.0, number("message_bytes") / 1024);
    const double units = std::min(16.0, number("qp_count"));
    auto& gbps = prediction->measures["bandwidth_gbps"].value;
    gbps = std::min(gbps, number("message_bytes") * 8 * units / (packets * 320));
    prediction->measures["bandwidth_gbps"] = {gbps, gbps, gbps};
    return prediction;
  }
};

// Claim:  what one QP can carry is learnt from the law, so an RNIC of many units is not given one QP to a peer.
// Oracle: 1 KiB in 320 ns is 25.6 Gbit/s, of a line of 100: four QPs are needed, which four units serve.
TEST(Advice, KnowsWhatOneQpCarries) {
  const Matrix matrix = one_kind(1400, 16384);
  Setting setting{.latency_qps = 1, .bulk_bytes = 65536, .in_flight_bytes = 1 << 20};
  EXPECT_NEAR(play(ManyUnits(), matrix, {.shared = setting})->at(0), 25.6, 1.5);
  const auto advice = advise(ManyUnits(), matrix);
  ASSERT_TRUE(advice) << advice.error().message;
  EXPECT_EQ(advice->choice, Choice::kShare);
  EXPECT_EQ(advice->setting.latency_qps, 4U);
}

// Claim:  a broker is told whenever an eighth of what may be under way is done, so 128 KiB on one QP fill the line.
// Oracle: 16 KiB take 1.3 us on the line, and 2 us there and back.
TEST(Advice, KnowsThatLargeMessagesDoNotGoInHerds) {
  const auto many = advise(Planted(), one_kind(200, 16384));
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(many->setting.latency_qps, 1U);
  EXPECT_EQ(many->setting.in_flight_bytes, 131072U);
}

// Claim:  few connections want several shared QPs where one would carry the line: of what is posted together, a
//         broker is told at the first and at the last, so messages on one QP go in herds.
// Oracle: 4 KiB take 328 ns on the line and 2 us there and back, so seven that went by themselves would fill it.
TEST(Advice, KnowsThatABrokerIsNotToldOfEachCompletion) {
  const auto few = advise(Planted(), one_kind(7, 4096));
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_GT(few->setting.latency_qps, 1U);
}

// Claim:  it says where a predicted gain is doubtful: over a tenth of more QPs than a chip holds READ; not
//         for WRITEs alone or with few READs, nor where nothing is to change.
TEST(Advice, SaysWhereItIsUnsure) {
  EXPECT_TRUE(advise(Planted(), one_kind(1400, 8192))->unsure);
  EXPECT_FALSE(advise(Planted(), one_kind(300, 8192))->unsure);
  if (kSanitized) return;  // what follows plays networks that take six times as long
  Matrix writes = one_kind(1400, 8192);
  writes.demands[0].operation = Operation::kWrite;
  const auto alone = advise(Planted(), writes);
  EXPECT_EQ(alone->choice, Choice::kShare);
  EXPECT_FALSE(alone->unsure);
  writes.demands.push_back({.from = "b", .to = "c", .connections = 1, .message_bytes = 64});
  const auto beside_one = advise(Planted(), writes);
  EXPECT_EQ(beside_one->choice, Choice::kShare);
  EXPECT_FALSE(beside_one->unsure) << "one READ of a host that is written to";
  writes.demands.back().connections = 200;
  EXPECT_TRUE(advise(Planted(), writes)->unsure) << "200 READs of such a host";
  writes.demands.back().from = "d";
  EXPECT_FALSE(advise(Planted(), writes)->unsure) << "READs between other hosts";
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
//         100 ns and 100 ns more.
TEST(Advice, GivesThreadsDoorbellsWhereTheyWaitForThem) {
  Matrix matrix = one_kind(300, 64, 8);
  matrix.broker_ns = 100;
  const auto advice = advise(Planted(), matrix);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->choice, Choice::kOwnDoorbells);
  EXPECT_NEAR(advice->gain.value, 8.0, 0.4);
  EXPECT_NEAR(advice->if_shared.value, 0.5, 0.05);
}

// Claim:  a gain that is no larger than what the law may be wrong by is not advised.
// Oracle: two fetches of which 31 % miss take less than the line; of which 58 % miss, 1.8 times as long.
TEST(Advice, IsSilentWhereTheGainIsSmall) {
  EXPECT_EQ(advise(Planted(), one_kind(480, 8192))->choice, Choice::kOwn);
  EXPECT_EQ(advise(Planted(), one_kind(600, 8192))->choice, Choice::kShare);
}

// Claim:  the interval of a gain is that of two independent errors.
// Oracle: a tenth either way of both, combined by their logarithms.
TEST(Advice, GivesAnInterval) {
  const auto advice = advise(Planted(0.1), one_kind(200, 8192));
  ASSERT_TRUE(advice);
  const auto& gain = advice->if_shared;
  const double width = std::hypot(std::log(0.9), std::log(1.1));
  EXPECT_NEAR(std::log(gain.value / gain.low), width, 1e-9);
  EXPECT_NEAR(std::log(gain.high / gain.value), width, 1e-9);
}

// Claim:  of several models the one is asked that knows the sizes.
TEST(Advice, AsksTheModelThatKnowsTheSize) {
  std::vector<std::unique_ptr<model::Model>> models;
  models.push_back(std::make_unique<Planted>(0.0, 1024));
  models.push_back(std::make_unique<Planted>(0.1, 1 << 20));
  const auto both = nearest_of(std::move(models));
  const auto small = advise(*both, one_kind(200, 512))->if_shared;
  EXPECT_EQ(small.low, small.value);
  const auto large = advise(*both, one_kind(200, 8192))->if_shared;
  EXPECT_LT(large.low, large.value);
}

// Claim:  of models that are equally far from what is asked the surest answers, whichever is named first.
TEST(Advice, AsksTheSurestOfEquals) {
  std::vector<std::unique_ptr<model::Model>> models;
  models.push_back(std::make_unique<Planted>(0.5));
  models.push_back(std::make_unique<Planted>(0.1));
  const auto both = nearest_of(std::move(models));
  EXPECT_EQ(advise(*both, one_kind(200, 8192))->if_shared.low,
            advise(Planted(0.1), one_kind(200, 8192))->if_shared.low);
}

// Claim:  long messages have QPs of their own only where there are short ones.
TEST(Advice, SplitsClassesWhereSizesDiffer) {
  Matrix matrix = one_kind(200, 65536);
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

/// The same, but messages pass in no time.
class Endless : public Planted {
 public:
  [[nodiscard]] Result<model::Prediction> predict(const Configuration& at) const override {
    auto prediction = Planted::predict(at);
    prediction->measures["bandwidth_gbps"] = {1e300, 1e300, 1e300};
    prediction->measures["latency_us_p50"] = {0, 0, 0};
    return prediction;
  }
};

// Claim:  a model of which messages pass in no time is told so, and does not hold who asks.
TEST(Advice, EndsWhereMessagesPassInNoTime) {
  const auto advice = advise(Endless(), one_kind(100, 64));
  ASSERT_FALSE(advice);
  EXPECT_EQ(advice.error().code, ErrorCode::kTooBig) << advice.error().message;
}

// Claim:  what would not fit into memory is refused before it is played, however small the file: many connections, few
//         with many messages each, many hosts.
TEST(ConnectionMatrix, OfTooManyIsRefused) {
  const auto path = std::filesystem::path(testing::TempDir()) / "greynic_many_connections.json";
  const auto read = [&](std::uint32_t entries, std::uint32_t count, std::uint32_t outstanding) {
    std::ofstream file(path);
    file << R"({"version":1,"connections":[)";
    for (std::uint32_t i = 0; i < entries; ++i) {
      file << (i > 0 ? "," : "") << R"({"from":"a)" << i << R"(","to":"b)" << i << R"(","count":)"
           << count << R"(,"operation":"READ","message_bytes":64,"outstanding":)" << outstanding
           << "}";
    }
    file << "]}";
    file.close();
    const auto matrix = read_matrix(path.string());
    std::filesystem::remove(path);
    return matrix;
  };
  EXPECT_TRUE(read(2, 10000, 50));
  EXPECT_TRUE(read(500, 1, 1));
  for (const auto& refused :
       {read(2, 10001, 1), read(10000, 1000000, 65536), read(20, 1000, 51), read(501, 1, 1)}) {
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("/connections"), std::string::npos)
        << refused.error().message;
  }
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
