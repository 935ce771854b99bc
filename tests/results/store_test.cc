#include "greynic/results/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cmath>
#include <limits>
#include <random>

#include "scratch.h"

namespace greynic::results {
namespace {

using greynic::testing::Scratch;

RunHeader header_of(const std::string& target) {
  return {.campaign_text = R"({"version":1})",
          .campaign_name = "mask_wall",
          .target = target,
          .seed = 18446744073709551615ULL,
          .settings = {{"measure.repeats", "3"}},
          .environment = {{"host", "here"}}};
}

Observation observation_of(double masks, int repeat) {
  Observation observation;
  observation.asked = {{"server_decap_masks", masks},
                       {"transport", std::string("RC")},
                       {"shared_receive_queue", true}};
  observation.repeat = repeat;
  observation.outcome = Outcome::kMeasured;
  observation.measures["bandwidth_gbps"] = {91.0 / 3.0 + masks, 0.1};
  observation.measures["latency_us_p50"] = {3.25, std::nullopt};
  observation.seed = 9007199254740993ULL;
  return observation;
}

/// Every field filled, with values that a careless writer would bend.
Observation full_observation() {
  Observation observation = observation_of(20, 2);
  observation.granted = observation.asked;
  observation.granted.set("server_decap_masks", 19.0);
  observation.counters_before = {{"rx_bytes", 4503599627370497.0}, {"only_before", 1.0}};
  observation.counters_after = {{"rx_bytes", 4503599627370499.0}, {"only_after", 2.0}};
  observation.counter_samples = {{"rx_bytes", {{1'000'000, 4503599627370497.0}, {2'000'000, 0.1}}},
                                 {"odd \"name\"", {{-1, -2.5}}}};
  observation.latency.record(1234, 7);
  observation.latency.record(987654, 1);
  observation.steady = SteadyState{.settled = true, .warmup_share = 0.125, .test = "MSER-5"};
  observation.elapsed_seconds = 0.1;
  observation.environment = {{"host", "h1"}, {"firmware", "22.\"35\"\n"}};
  return observation;
}

void expect_same(const Observation& got, const Observation& want) {
  EXPECT_EQ(got.asked, want.asked);
  EXPECT_EQ(got.granted, want.granted);
  EXPECT_EQ(got.repeat, want.repeat);
  EXPECT_EQ(got.outcome, want.outcome);
  EXPECT_EQ(got.reason, want.reason);
  EXPECT_EQ(got.measures, want.measures);
  EXPECT_EQ(got.counters_before, want.counters_before);
  EXPECT_EQ(got.counters_after, want.counters_after);
  EXPECT_EQ(got.counter_samples, want.counter_samples);
  EXPECT_EQ(got.latency.buckets(), want.latency.buckets());
  EXPECT_EQ(got.steady, want.steady);
  EXPECT_EQ(got.seed, want.seed);
  EXPECT_EQ(got.elapsed_seconds, want.elapsed_seconds);
  EXPECT_EQ(got.environment, want.environment);
}

// Claim:  every field of every observation comes back as it went in, to the last bit.
// Oracle: the observations themselves.
TEST(RunStore, GivesBackWhatWasStored) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  Observation refused;
  refused.asked = {{"odd \"name\"", std::string("it's, 1=2")}};
  refused.outcome = Outcome::kRefused;
  refused.reason = "IBV_WC_RNR_RETRY_EXC_ERR";
  const std::vector<Observation> stored = {full_observation(), observation_of(0, 0), refused};
  {
    auto store = RunStore::open_to_append(path, header_of("twin:cx6"));
    ASSERT_TRUE(store) << store.error().message;
    for (const Observation& observation : stored) ASSERT_TRUE(store->append(observation));
  }
  auto store = RunStore::open_to_read(path);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(store->header().target, "twin:cx6");
  EXPECT_EQ(store->header().seed, 18446744073709551615ULL);
  EXPECT_EQ(store->header().settings, header_of("").settings);
  EXPECT_EQ(store->header().environment, header_of("").environment);
  const auto got = store->observations();
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) expect_same((*got)[i], stored[i]);
  EXPECT_EQ(store->keys().value().size(), 3U);
}

// Claim:  a run of a version that knew no outcome too_short is read as one that does: where it says
//         that nothing completed in time, nothing is known. A true timeout stays one.
TEST(RunStore, ReadsAnOldRunsShortMeasurementAsTooShort) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  Observation hung = observation_of(0, 0);
  hung.outcome = Outcome::kTimedOut;
  hung.reason = "no answer from the peer";
  Observation brief = observation_of(1, 0);
  brief.outcome = Outcome::kTimedOut;
  brief.reason = "nothing completed within the measured time; measure longer";
  {
    auto store = RunStore::open_to_append(path, header_of("verbs:rxe0"));
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->append_all(std::vector{hung, brief}));
  }
  const auto got = RunStore::open_to_read(path)->observations();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ((*got)[0].outcome, Outcome::kTimedOut);
  EXPECT_EQ((*got)[1].outcome, Outcome::kTooShort);
}

// Claim:  explaining a run again without its device hides no explanation that was tested on it.
TEST(RunStore, PrefersTheTestedExplanation) {
  const Scratch scratch;
  auto store = RunStore::open_to_append(scratch / "run.db", header_of("twin:cx6"));
  ASSERT_TRUE(store);
  EXPECT_EQ(store->best_explanation().value(), "");
  ASSERT_TRUE(store->keep(kHypotheses, "{\"a\":1}"));
  EXPECT_EQ(store->best_explanation().value(), "{\"a\":1}");
  ASSERT_TRUE(store->keep(kExplanation, "{\"a\":2}"));
  ASSERT_TRUE(store->keep(kHypotheses, "{\"a\":3}"));
  EXPECT_EQ(store->best_explanation().value(), "{\"a\":2}");
  EXPECT_EQ(store->documents()->size(), 2U);
}

// Claim:  nothing is stored twice, nothing is stored by halves, and no number that is none.
TEST(RunStore, RefusesWhatItHasAndWhatIsNoNumber) {
  const Scratch scratch;
  auto store = RunStore::open_to_append(scratch / "run.db", header_of("twin:cx6"));
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->append(observation_of(5, 0)));
  EXPECT_EQ(store->append(observation_of(5, 0)).error().code, ErrorCode::kInternal);
  const std::vector<Observation> batch = {observation_of(5, 1), observation_of(5, 0)};
  EXPECT_EQ(store->append_all(batch).error().code, ErrorCode::kInternal);
  EXPECT_EQ(store->keys().value().size(), 1U) << "a failed batch left a row behind";
  Observation bad = observation_of(6, 0);
  bad.measures["bandwidth_gbps"].value = std::nan("");
  EXPECT_EQ(store->append(bad).error().code, ErrorCode::kInternal);
  bad = observation_of(6, 0);
  bad.counters_after["x"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(store->append(bad).error().code, ErrorCode::kInternal);
  EXPECT_EQ(store->append(Observation{}).error().code, ErrorCode::kInternal);
  EXPECT_TRUE(store->append(observation_of(5, 1))) << "the store is no longer usable";
}

// Claim:  a run tells which command made it, when, and by which version; a run of before, which
//         holds none of that, still reads; and another command goes on with the same run.
TEST(RunStore, TellsWhatMadeIt) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  RunHeader header = header_of("twin:cx6");
  header.command = "greynic run 'a campaign.json' --target twin:cx6";
  ASSERT_TRUE(RunStore::open_to_append(path, header));
  header.command = "greynic tune";
  ASSERT_TRUE(RunStore::open_to_append(path, header)) << "the command is no part of the identity";
  const auto stored = RunStore::open_to_read(path);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->header().command, "greynic run 'a campaign.json' --target twin:cx6");
  EXPECT_FALSE(stored->header().version.empty());
  EXPECT_EQ(stored->header().made.size(), std::string("2026-03-14 15:09:26").size());
  SQLite::Database(path, SQLite::OPEN_READWRITE)
      .exec("DELETE FROM header WHERE name IN ('command', 'version', 'made')");
  const auto old = RunStore::open_to_read(path);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->header().command + old->header().version + old->header().made, "");
}

// Claim:  a run goes on under the same header and under no other, and says what differs.
TEST(RunStore, GoesOnOnlyWithTheSameHeader) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  ASSERT_TRUE(RunStore::open_to_append(path, header_of("twin:cx6")));
  RunHeader same = header_of("twin:cx6");
  same.environment["host"] = "elsewhere";
  EXPECT_TRUE(RunStore::open_to_append(path, same));
  const auto expect_refused = [&](const RunHeader& header, const std::string& word) {
    const auto store = RunStore::open_to_append(path, header);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kBadInput);
    EXPECT_NE(store.error().message.find(word), std::string::npos) << store.error().message;
    EXPECT_NE(store.error().message.find(path), std::string::npos);
  };
  expect_refused(header_of("twin:cx5"), "twin:cx5");
  RunHeader other = same;
  other.campaign_text += " ";
  expect_refused(other, "has changed");
  other = same;
  other.seed = 1;
  expect_refused(other, "seed");
  other = same;
  other.settings["measure.repeats"] = "4";
  expect_refused(other, "measure.repeats");
}

// Claim:  two processes cannot write one run; a reader may look on meanwhile.
TEST(RunStore, HasOneWriterAndManyReaders) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  auto writer = RunStore::open_to_append(path, header_of("twin:cx6"));
  ASSERT_TRUE(writer);
  const auto second = RunStore::open_to_append(path, header_of("twin:cx6"));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process"), std::string::npos);
  ASSERT_TRUE(writer->append(observation_of(1, 0)));
  auto reader = RunStore::open_to_read(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->observations()->size(), 1U);
  ASSERT_TRUE(writer->append(observation_of(2, 0)));
  EXPECT_EQ(reader->observations()->size(), 2U);
  EXPECT_EQ(reader->append(observation_of(3, 0)).error().code, ErrorCode::kInternal);
}

// Claim:  a document is kept, replaced and listed, also through a run opened for reading.
TEST(RunStore, KeepsDocumentsByKind) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  ASSERT_TRUE(RunStore::open_to_append(path, header_of("twin:cx6")));
  auto store = RunStore::open_to_read(path);
  ASSERT_TRUE(store);
  EXPECT_EQ(store->kept("model").value(), "");
  ASSERT_TRUE(store->keep("model", "{\"a\":1}"));
  ASSERT_TRUE(store->keep("model", "{\"a\":2}"));
  ASSERT_TRUE(store->keep("layout", "{}"));
  EXPECT_EQ(store->kept("model").value(), "{\"a\":2}");
  EXPECT_EQ(store->documents()->size(), 2U);
}

// Claim:  the views that docs/formats/run.md promises answer plain SQL, new columns included.
// Oracle: SQLite itself, through a connection that knows nothing of RunStore.
TEST(RunStore, AnswersPlainSql) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  {
    auto store = RunStore::open_to_append(path, header_of("twin:cx6"));
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->append(observation_of(10, 0)));
    ASSERT_TRUE(store->append(full_observation()));
  }
  const SQLite::Database database(path, SQLite::OPEN_READONLY);
  const auto number = [&](const std::string& sql) {
    SQLite::Statement statement(database, sql);
    statement.executeStep();
    return statement.getColumn(0).getDouble();
  };
  EXPECT_EQ(number("SELECT bandwidth_gbps FROM flat WHERE server_decap_masks = 10"),
            91.0 / 3.0 + 10);
  EXPECT_EQ(number("SELECT count(*) FROM flat WHERE transport = 'RC' AND shared_receive_queue"), 2);
  EXPECT_EQ(number("SELECT observations FROM run"), 2);
  EXPECT_EQ(number("SELECT level FROM levels WHERE observation = 2 AND factor LIKE '%masks'"), 20);
  EXPECT_EQ(number("SELECT standard_error FROM measures WHERE measure = 'bandwidth_gbps'"), 0.1);
  EXPECT_EQ(number("SELECT difference FROM counters WHERE counter = 'rx_bytes'"), 2);
  EXPECT_EQ(number("SELECT observations FROM outcomes WHERE outcome = 'measured'"), 2);
  EXPECT_EQ(number("PRAGMA user_version"), 1);
}

// Claim:  whatever was appended before a SIGKILL is there afterwards, and nothing else.
// Oracle: a byte sent through a pipe after each append has returned.
// Method: 20 children are killed after a random time, half of them not before their first append.
TEST(RunStore, SurvivesBeingKilled) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  std::mt19937 random(20261121);
  RecordProperty("seed", 20261121);
  std::set<int> acknowledged;
  for (int round = 0; round < 20; ++round) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const int first = round * 100000;  // more than a round can do
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = RunStore::open_to_append(path, header_of("twin:cx6"));
      if (!store) {
        std::fprintf(stderr, "%s\n", store.error().message.c_str());
        ::_exit(9);
      }
      for (int i = first;; ++i) {
        if (!store->append(observation_of(i, 0))) ::_exit(8);
        if (::write(told[1], &i, sizeof i) != sizeof i) ::_exit(7);
      }
    }
    ::close(told[1]);
    // Every other child gets to its first append, however loaded the machine is.
    int i = 0;
    if (round % 2 == 0 && ::read(told[0], &i, sizeof i) == sizeof i) acknowledged.insert(i);
    ::usleep(std::uniform_int_distribution<unsigned>(0, 30000)(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << WEXITSTATUS(status);
    while (::read(told[0], &i, sizeof i) == sizeof i) acknowledged.insert(i);
    ::close(told[0]);
  }
  auto store = RunStore::open_to_append(path, header_of("twin:cx6"));
  ASSERT_TRUE(store) << store.error().message;
  const auto observations = store->observations();
  ASSERT_TRUE(observations) << observations.error().message;
  std::set<int> there;
  for (const Observation& observation : *observations) {
    const double masks = observation.asked.number("server_decap_masks");
    EXPECT_TRUE(there.insert(static_cast<int>(masks)).second) << masks << " is there twice";
    EXPECT_EQ(observation.measures, observation_of(masks, 0).measures) << "half a row";
  }
  for (const int i : acknowledged) EXPECT_TRUE(there.contains(i)) << i << " is lost";
  EXPECT_GE(acknowledged.size(), 10U) << "the children were killed before they did anything";
  // An append that was done but not yet acknowledged may be there: one a round at most.
  EXPECT_LE(there.size(), acknowledged.size() + 20);
}

struct Damage {
  std::string name;
  std::string sql;  ///< done to a good run; empty: `bytes` replace the file
  std::string bytes;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedRun : public ::testing::TestWithParam<Damage> {};

// Claim:  a file that is no run, or a damaged one, is refused with its name, and stays as it is.
TEST_P(DamagedRun, IsRefusedAndLeftAlone) {
  const Scratch scratch;
  const std::string path = scratch / "run.db";
  {
    auto store = RunStore::open_to_append(path, header_of("twin:cx6"));
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->append(full_observation()));
  }
  if (GetParam().sql.empty()) {
    std::ofstream(path, std::ios::binary) << GetParam().bytes;
  } else {
    SQLite::Database database(path, SQLite::OPEN_READWRITE);
    database.exec(GetParam().sql);
  }
  const std::string before = testing::read_file(path);
  const auto refusal = [&]() -> std::optional<Error> {
    auto store = RunStore::open_to_read(path);
    if (!store) return store.error();
    auto observations = store->observations();
    if (!observations) return observations.error();
    return std::nullopt;
  }();
  ASSERT_TRUE(refusal) << "was read as if nothing were wrong";
  EXPECT_EQ(exit_code(refusal->code), 2) << refusal->message;
  EXPECT_NE(refusal->message.find(path), std::string::npos) << refusal->message;
  EXPECT_EQ(testing::read_file(path), before);
}

INSTANTIATE_TEST_SUITE_P(
    RunStore, DamagedRun,
    ::testing::Values(
        Damage{"Empty", "", ""},
        Damage{"Text", "", "# a log, not a run, and long enough to be read\n"},
        Damage{"HeaderOnly", "", std::string("SQLite format 3\0", 16)},
        Damage{"OtherDatabase", "PRAGMA application_id = 1", ""},
        Damage{"NewerVersion", "PRAGMA user_version = 99", ""},
        Damage{"NoTable", "DROP TABLE observation", ""},
        Damage{"NoHeader", "DROP TABLE header", ""},
        Damage{"BadSeed", "UPDATE header SET value = 'x' WHERE name = 'seed'", ""},
        Damage{"BadConfiguration", "UPDATE observation SET asked = '{\"a\":'", ""},
        Damage{"NestedConfiguration", "UPDATE observation SET asked = '{\"a\":{\"b\":1}}'", ""},
        Damage{"UnknownOutcome", "UPDATE observation SET outcome = 'fine'", ""},
        Damage{"BadHistogram", "UPDATE observation SET latency_ns_buckets = '[[1,-2]]'", ""},
        Damage{"BadEnvironment", "UPDATE environment SET json = '[1]'", ""},
        Damage{"BadObservationSeed", "UPDATE observation SET seed = '-1'", ""}),
    [](const auto& damage) { return damage.param.name; });

// Claim:  what is not there, and what is a directory, is refused by name and nothing is created.
TEST(RunStore, RefusesMissingFilesAndDirectories) {
  const Scratch scratch;
  const auto missing = RunStore::open_to_read(scratch / "none.db");
  ASSERT_FALSE(missing);
  EXPECT_EQ(exit_code(missing.error().code), 2);
  EXPECT_FALSE(std::filesystem::exists(scratch / "none.db"));
  EXPECT_EQ(exit_code(RunStore::open_to_read(scratch.str()).error().code), 2);
  EXPECT_EQ(exit_code(RunStore::open_to_append(scratch.str(), header_of("t")).error().code), 2);
}

}  // namespace
}  // namespace greynic::results
