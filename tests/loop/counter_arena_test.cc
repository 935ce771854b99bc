#include "counter_arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "greynic/loop/kinds.h"
#include "greynic/target/target.h"
#include "greynic/zero/reader.h"
#ifdef GREYNIC_WITH_TWIN
#include "greynic/twin/twin.h"
#endif

namespace greynic::loop {
namespace {

using target::CounterReading;

// Claim:  a reading comes back from the arena as it was published, to the last bit, also when other
//         counters appear meanwhile; before the first one there is none.
TEST(CounterArena, GivesBackWhatWasPublished) {
  const auto arena = counter_arenas({})("");
  EXPECT_TRUE(arena->look().counters.empty());
  std::vector<std::pair<std::string, double>> counters = {{"rdma.packets_sent", 0.0},
                                                          {"hw.odd_name", 1.0 / 3}};
  for (std::int64_t time = 1; time <= 1000; ++time) {
    if (time == 400) counters.emplace_back("rdma.ack_timeouts", 0.0);
    for (auto& [name, value] : counters) value += 1e9 / static_cast<double>(time);
    arena->publish({time, counters});
    const CounterReading seen = arena->look();
    ASSERT_EQ(seen.time_ns, time);
    ASSERT_EQ(seen.counters, counters);
  }
}

// Claim:  an arena with a path is seen by any other one-sided reader; two without one are apart.
TEST(CounterArena, IsSeenByOthersWhereItHasAName) {
  char folder[] = "/tmp/greynic_counters_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/region";
  const auto arena = counter_arenas({})(path);
  arena->publish({5, {{"rdma.packets_sent", 17.0}}});
  auto source = zero::map_region(path);
  ASSERT_TRUE(source) << source.error().message;
  auto reader = zero::ArenaReader::open(std::move(*source));
  ASSERT_TRUE(reader) << reader.error().message;
  arena->publish({6, {{"rdma.packets_sent", 18.0}}});
  const auto readings = reader->look();
  ASSERT_TRUE(readings);
  ASSERT_EQ(readings->size(), 1U);
  const zero::Reading& row = readings->front();
  std::map<std::string, double> seen;
  for (const zero::Field& field : row.row->schema->fields) {
    seen[field.name] = zero::number_of(field, row.bytes);
  }
  EXPECT_EQ(seen, (std::map<std::string, double>{{"rdma.packets_sent", 18.0}, {"time_ns", 6.0}}));
  const auto one = counter_arenas({})(""), other = counter_arenas({})("");
  one->publish({1, {{"n", 1.0}}});
  other->publish({2, {{"n", 2.0}}});
  EXPECT_EQ(one->look().time_ns, 1);
  EXPECT_EQ(other->look().time_ns, 2);
  std::filesystem::remove_all(folder);
}

// Claim:  where no arena can be made, readings are not lost and the reason is told.
TEST(CounterArena, LosesNothingWhereNoneCanBeMade) {
  std::string told;
  const Talk talk{.say = [&](const std::string& line) { told += line; }, .progress = {}};
  const auto arena = counter_arenas(talk)("/no/such/folder/region");
  const CounterReading reading{7, {{"n", 3.0}}};
  arena->publish(reading);
  EXPECT_EQ(arena->look().counters, reading.counters);
  EXPECT_EQ(arena->look().time_ns, 7);
  EXPECT_NE(told.find("not published"), std::string::npos) << told;
}

#ifdef GREYNIC_WITH_TWIN
// Claim:  samples of a twin's run that were READ out of an arena are those of the engine itself.
TEST(CounterArena, ChangesNothingOfATwinsSamples) {
  target::MeasureRequest request;
  request.configuration = parse_configuration("qp_count=4,operation=READ").value();
  request.duration = std::chrono::milliseconds(3);
  request.sample_every = std::chrono::microseconds(100);
  const auto specs = target::parse_specs("twin:cx6?threads=1&stop=duration").value();
  auto alone = twin::create(specs.front()).value();
  auto read = twin::create(specs.front()).value();
  read->set_counter_arenas(counter_arenas({}));
  const Observation plain = target::measure_one(*alone, request).value();
  const Observation seen = target::measure_one(*read, request).value();
  EXPECT_GT(plain.counter_samples.size(), 3U);
  EXPECT_EQ(seen.counter_samples, plain.counter_samples);
  EXPECT_EQ(seen.measures, plain.measures);
}
#endif

}  // namespace
}  // namespace greynic::loop
