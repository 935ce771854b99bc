/// Runs that a kill, a disk or a hostile hand has changed.

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "greynic/results/store.h"
#include "scratch.h"

namespace greynic::results {
namespace {

using greynic::testing::read_file;
using greynic::testing::Scratch;

constexpr int kObservations = 60;

RunHeader header_of_damaged() {
  return {.campaign_text = R"({"version":1})", .campaign_name = "c", .target = "twin:cx6"};
}

Observation observation_of(int masks) {
  Observation observation;
  observation.asked = {{"server_decap_masks", static_cast<double>(masks)}};
  observation.outcome = Outcome::kMeasured;
  observation.measures["bandwidth_gbps"] = {90.0 + masks / 7.0, 0.1};
  observation.measures["zero"] = {-0.0, std::nullopt};
  observation.counters_after = {{"rx_bytes", 1e9 + masks}};
  observation.environment = {{"host", "h"}};
  return observation;
}

/// A run of some observations with the ids 1 to 60.
std::string good_run(const Scratch& scratch) {
  const std::string path = scratch / "run.db";
  auto store = RunStore::open_to_append(path, header_of_damaged());
  EXPECT_TRUE(store);
  for (int i = 0; i < kObservations; ++i) EXPECT_TRUE(store->append(observation_of(i)));
  return path;
}

Result<std::vector<Observation>> observations_of(const std::string& path) {
  const auto store = RunStore::open_to_read(path);
  if (!store) return pass_on(store);
  return store->observations();
}

void change(const std::string& path, const std::string& sql) {
  SQLite::Database(path, SQLite::OPEN_READWRITE).exec(sql);
}

// Claim:  whatever of an observation is changed, both who reads the run and who goes on with it are
//         told which observation is lost.
TEST(DamagedRun, TellsWhichObservationsAreLost) {
  for (const std::string sql :
       {"UPDATE measure SET value = value + 1e-9 WHERE observation = 17 AND name = "
        "'bandwidth_gbps'",
        "UPDATE measure SET standard_error = NULL WHERE observation = 17",
        "UPDATE measure SET name = 'goodput_gbps' WHERE observation = 17 AND name = 'zero'",
        "DELETE FROM measure WHERE observation = 17", "DELETE FROM observation WHERE id = 17",
        "UPDATE counter SET after = 5 WHERE observation = 17",
        "UPDATE observation SET asked = '{\"server_decap_masks\":99}' WHERE id = 17",
        "UPDATE observation SET outcome = 'failed' WHERE id = 17",
        "UPDATE observation SET reason = 'none' WHERE id = 17",
        "UPDATE observation SET repeat = 4 WHERE id = 17",
        "UPDATE observation SET asked = '{' WHERE id = 17",
        "UPDATE checksum SET crc64 = '0' WHERE of = '17'"}) {
    const Scratch scratch;
    const std::string path = good_run(scratch);
    change(path, sql);
    const auto read = observations_of(path);
    const auto appended = RunStore::open_to_append(path, header_of_damaged());
    ASSERT_FALSE(read) << sql;
    ASSERT_FALSE(appended) << sql;
    for (const Error& error : {read.error(), appended.error()}) {
      EXPECT_EQ(exit_code(error.code), 2);
      EXPECT_NE(error.message.find("1 of 60 observations are lost: 17"), std::string::npos)
          << sql << "\n"
          << error.message;
    }
  }
  const Scratch scratch;
  const std::string path = good_run(scratch);
  change(path, "DELETE FROM observation WHERE id IN (3, 17, 18, 19, 60)");
  EXPECT_NE(
      observations_of(path).error().message.find("5 of 60 observations are lost: 3, 17 to 19, 60;"),
      std::string::npos);
}

TEST(DamagedRun, IsToldByItsHeaderToo) {
  for (const std::string sql : {"UPDATE header SET value = 'twin:cx5' WHERE name = 'target'",
                                "INSERT INTO setting VALUES ('measure.repeats', '4')"}) {
    const Scratch scratch;
    const std::string path = good_run(scratch);
    change(path, sql);
    EXPECT_EQ(observations_of(path).error().code, ErrorCode::kBadInput) << sql;
    EXPECT_EQ(RunStore::open_to_append(path, header_of_damaged()).error().code,
              ErrorCode::kBadInput)
        << sql;
  }
}

// Claim:  no damage to the bytes of a file makes a reader crash, nor a wrong number pass for a
// right
//         one: what is read is what was written.
// Oracle: the observations as they were written.
// Method: 300 files with a changed byte, a block of noise, a block of zeros, or the end cut off.
TEST(DamagedRun, GivesNoNumberThatWasNotWritten) {
  const Scratch scratch;
  const std::string good = read_file(good_run(scratch));
  const auto want = observations_of(scratch / "run.db").value();
  ASSERT_EQ(want.size(), kObservations);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    const std::size_t at = random() % bytes.size();
    const std::size_t length = std::min<std::size_t>(512, bytes.size() - at);
    switch (round % 4) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] + 1 + static_cast<char>(random() % 255));
        break;
      case 1:
        for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<char>(random());
        break;
      case 2:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
        break;
      default:
        bytes.resize(at);
    }
    const std::string path = scratch.write("damaged.db", bytes);
    const auto got = observations_of(path);
    if (!got) {
      ++refused;
      EXPECT_EQ(exit_code(got.error().code), 2) << round << ": " << got.error().message;
    } else {
      ASSERT_EQ(got->size(), want.size()) << round;
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ((*got)[i].measures, want[i].measures) << round;
        EXPECT_EQ((*got)[i].asked, want[i].asked) << round;
        EXPECT_EQ((*got)[i].counters_after, want[i].counters_after) << round;
      }
    }
    // Who goes on with it either refuses, or has every observation.
    const auto appended = RunStore::open_to_append(path, header_of_damaged());
    if (appended && got) EXPECT_EQ(appended->keys()->size(), want.size()) << round;
    if (appended && !got) EXPECT_TRUE(bytes.empty()) << round << ": " << got.error().message;
  }
  EXPECT_GT(refused, 150) << "most damage touches something";
}

/// A run whose writer died in the middle of a transaction.
/// Method: file and journal are copied while a transaction is open and written out.
std::string dead_run(const Scratch& scratch) {
  const std::string path = good_run(scratch);
  const std::string dead = scratch / "dead.db";
  SQLite::Database writer(path, SQLite::OPEN_READWRITE);
  writer.exec("PRAGMA cache_size = 1");  // pages go to the file before the commit
  writer.exec("BEGIN IMMEDIATE");
  writer.exec("UPDATE measure SET value = -1");
  writer.exec("UPDATE observation SET reason = hex(zeroblob(4000))");
  std::filesystem::copy_file(path, dead);
  std::filesystem::copy_file(path + "-journal", dead + "-journal");
  writer.exec("ROLLBACK");
  EXPECT_NE(read_file(dead), read_file(path)) << "the transaction had not reached the file";
  return dead;
}

// Claim:  a run whose writer was killed in the middle of a transaction is read as it was before it.
TEST(DamagedRun, IsReadBesideTheJournalOfADeadWriter) {
  const Scratch scratch;
  const std::string dead = dead_run(scratch);
  const auto got = observations_of(dead);
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), kObservations);
  EXPECT_EQ(got->front().measures, observation_of(0).measures);
  EXPECT_TRUE(RunStore::open_to_append(dead, header_of_damaged()));
}

// Claim:  so is one in a place where the reader may write nothing: neither the folder, nor the run or
//         its journal.
// Method: as a user without rights; root may write everywhere.
TEST(DamagedRun, OfADeadWriterIsReadByWhoMayNotWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user without rights";
  const Scratch scratch;
  const std::string dead = dead_run(scratch);
  for (const std::string& file : {dead, dead + "-journal"}) ASSERT_EQ(chmod(file.c_str(), 0444), 0);
  ASSERT_EQ(chmod((scratch / "").c_str(), 0755), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const auto got = observations_of(dead);
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->size(), kObservations);
}

// Claim:  a file with code in it, which could run for ever, is refused at once.
TEST(DamagedRun, RunsNoCodeOfTheFile) {
  const std::string endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";
  for (const std::string& sql :
       {"DROP TABLE header; CREATE VIEW header AS " + endless + "i AS name, i AS value FROM n",
        "DROP TABLE observation; CREATE VIEW observation AS " + endless + "* FROM n",
        "DROP TABLE checksum; CREATE VIEW checksum AS " + endless + "i AS of, i AS crc64 FROM n",
        std::string("CREATE TRIGGER t AFTER INSERT ON measure BEGIN DELETE FROM counter; END")}) {
    const Scratch scratch;
    const std::string path = good_run(scratch);
    change(path, sql);
    const auto read = RunStore::open_to_read(path);
    ASSERT_FALSE(read) << sql;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput) << read.error().message;
    EXPECT_FALSE(RunStore::open_to_append(path, header_of_damaged())) << sql;
  }
}

// Claim: a run of before there were checksums is read and gone on with.
TEST(DamagedRun, IsNotOneThatHasNoChecksums) {
  const Scratch scratch;
  const std::string path = good_run(scratch);
  change(path, "DROP TABLE checksum");
  EXPECT_EQ(observations_of(path)->size(), kObservations);
  {
    auto store = RunStore::open_to_append(path, header_of_damaged());
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->append(observation_of(1000)));
  }
  EXPECT_EQ(observations_of(path)->size(), kObservations + 1);
  change(path, "DELETE FROM observation WHERE id = 61");
  EXPECT_FALSE(observations_of(path));
}

TEST(RunInMemory, IsSavedInOnePiece) {
  const Scratch scratch;
  auto store = RunStore::create_in_memory(header_of_damaged());
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(store->append(observation_of(5)));
  ASSERT_TRUE(store->save_as(scratch / "saved.db"));
  EXPECT_EQ(observations_of(scratch / "saved.db")->size(), 1U);
  EXPECT_TRUE(RunStore::open_to_append(scratch / "saved.db", header_of_damaged()));
  EXPECT_FALSE(store->save_as(scratch / "none/saved.db"));
}

}  // namespace
}  // namespace greynic::results
