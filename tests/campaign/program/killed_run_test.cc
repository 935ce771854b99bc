#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <random>

#include "../../results/scratch.h"
#include "greynic/results/store.h"

namespace greynic::campaign {
namespace {

using greynic::testing::Scratch;

/// Starts the program itself; its output goes nowhere.
pid_t start_program(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, 1);
  ::dup2(nowhere, 2);
  std::vector<char*> raw = {const_cast<char*>(GREYNIC_BINARY)};
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  ::execv(GREYNIC_BINARY, raw.data());
  ::_exit(99);
}

std::map<results::ObservationKey, std::string> rows_of(const std::string& path) {
  std::map<results::ObservationKey, std::string> rows;
  const SQLite::Database database(path, SQLite::OPEN_READONLY);
  SQLite::Statement select(database,
                           "SELECT o.configuration, o.repeat, m.value FROM observation AS o"
                           " LEFT JOIN measure AS m ON m.observation = o.id");
  while (select.executeStep()) {
    const auto [row, added] =
        rows.insert({{select.getColumn(0).getString(), select.getColumn(1).getInt()},
                     select.getColumn(2).getString()});
    EXPECT_TRUE(added) << "stored twice: " << row->first.first;
  }
  return rows;
}

// Claim:  `kill -9` of `greynic run` at any moment, then the same command: nothing lost, nothing
//         twice.
// Oracle: the same campaign in one go; the command's answer depends on the request alone. What was
//         stored before a kill must be there, unchanged, after it.
// Method: 20 kills at random moments, from before the file is there to deep in the run.
TEST(GreynicRun, GoesOnAfterBeingKilled) {
  const Scratch scratch;
  const std::string campaign = scratch.write("c.json", R"({
    "version": 1, "name": "killed",
    "factors": { "a": { "type": "numeric", "levels": [1,2,3,4,5,6,7,8,9,10] },
                 "b": { "type": "numeric", "levels": [1,2,3,4,5,6,7,8,9,10] } },
    "design": "full", "baseline": { "a": 1, "b": 1 },
    "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
    "measure": { "repeats": 15, "seconds": 1 } })");
  // A shell starts in a millisecond; the answer is cut from the request's own text.
  const std::string script = scratch.write("m.sh", R"(
    while read -r line; do
      id=${line#*:}; seed=${line##*:}
      echo "{\"id\":${id%%,*},\"bandwidth_gbps\":${seed%\}}}"
    done)");
  const auto command = [&](const std::string& out) -> std::vector<std::string> {
    return {"run", campaign, "--target", "exec:exec sh " + script, "-o", scratch / out};
  };
  // An undisturbed run says how long one takes here, so that the kills fall everywhere into it.
  const auto finish = [&](const std::string& out) {
    const pid_t child = start_program(command(out));
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  };
  const auto began = std::chrono::steady_clock::now();
  finish("whole.db");
  const auto duration = std::chrono::steady_clock::now() - began;
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(duration / 5).count();
  constexpr unsigned kSeed = 20261121;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  const std::string path = scratch / "killed.db";
  std::map<results::ObservationKey, std::string> before;
  int useful = 0;
  for (int kill = 0; kill < 20; ++kill) {
    const pid_t child = start_program(command("killed.db"));
    ::usleep(std::uniform_int_distribution<unsigned>(1000, static_cast<unsigned>(longest))(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    if (!std::filesystem::exists(path)) continue;
    auto store = results::RunStore::open_to_read(path);
    if (!store) continue;  // killed while the file was made; the next call must cope
    const auto after = rows_of(path);
    for (const auto& [key, value] : before) {
      const auto found = after.find(key);
      ASSERT_TRUE(found != after.end()) << "lost: " << key.first;
      ASSERT_EQ(found->second, value);
    }
    useful += after.size() > before.size() ? 1 : 0;
    before = after;
  }
  EXPECT_GE(useful, 3) << "hardly any of the killed runs stored anything";
  finish("killed.db");
  const auto whole = rows_of(scratch / "whole.db");
  EXPECT_EQ(whole.size(), 1500U);
  EXPECT_EQ(rows_of(path), whole);
}

}  // namespace
}  // namespace greynic::campaign
