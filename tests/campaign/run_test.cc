#include "greynic/campaign/run.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <random>

#include "../results/scratch.h"
#include "greynic/target/interrupt.h"

namespace greynic::campaign {
namespace {

using greynic::testing::Scratch;
using target::MeasureRequest;

/// Answers at once, in reverse order, and counts what it was asked.
class FakeTarget : public target::Target {
 public:
  target::Info info() const override {
    target::Info info;
    info.name = "fake";
    info.virtual_time = virtual_time;
    info.factors = {"qp_count"};
    return info;
  }
  Result<void> measure(std::span<const MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    for (std::size_t i = requests.size(); i-- > 0;) {
      ++asked[{requests[i].configuration.name(), requests[i].repeat}];
      Observation observation;
      observation.outcome = i % 7 == 3 ? Outcome::kRefused : Outcome::kMeasured;
      if (i % 7 == 3) observation.reason = i % 2 == 0 ? "it is even" : "it is odd";
      observation.measures["bandwidth_gbps"] = {static_cast<double>(requests[i].seed % 1000), {}};
      observation.measures["other"] = {1.0, {}};
      if (!sink(i, observation)) return {};
      if (--left == 0) return fail(ErrorCode::kMissing, "the device is gone");
    }
    return {};
  }

  bool virtual_time = false;
  int left = -1;  ///< answers until the device is gone
  std::map<results::ObservationKey, int> asked;
};

std::vector<Configuration> plan_of(int count) {
  std::vector<Configuration> plan;
  for (int i = 0; i < count; ++i) plan.push_back({{"qp_count", static_cast<double>(i)}});
  return plan;
}

results::RunStore store_in(const Scratch& scratch) {
  auto store = results::RunStore::open_to_append(scratch / "run.db", {.campaign_text = {},
                                                                      .campaign_name = "c",
                                                                      .target = "fake",
                                                                      .seed = 1,
                                                                      .settings = {},
                                                                      .environment = {}});
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

// Claim:  each configuration and repeat is measured once, however often the run is broken off, both
//         when observations are stored one by one and when they share a transaction.
TEST(CampaignRun, MeasuresEachOnceAcrossFailures) {
  for (const bool batched : {false, true}) {
    const Scratch scratch;
    FakeTarget device;
    device.virtual_time = batched;
    const auto plan = plan_of(40);
    RunOptions options;
    options.repeats = 3;
    int calls = 0;
    while (true) {
      auto store = store_in(scratch);
      device.left = 17;
      const auto summary = run(device, plan, store, options);
      ++calls;
      if (!summary) {
        EXPECT_EQ(summary.error().code, ErrorCode::kMissing);
        continue;
      }
      EXPECT_TRUE(summary->complete);
      EXPECT_EQ(summary->total, 120U);
      break;
    }
    EXPECT_EQ(calls, 8);
    EXPECT_EQ(device.asked.size(), 120U);
    for (const auto& [key, times] : device.asked) EXPECT_EQ(times, 1) << key.first;
    auto store = store_in(scratch);
    EXPECT_EQ(store.keys()->size(), 120U);
  }
}

// Claim:  the summary says how often each outcome came, and why what was not measured was not.
// Oracle: of requests 3, 10, 17, 24, 31 and 38, which the device refuses, half are even.
TEST(CampaignRun, CountsReasonsOfWhatWasNotMeasured) {
  const Scratch scratch;
  FakeTarget device;
  auto store = store_in(scratch);
  RunOptions options;
  options.repeats = 1;
  const auto summary = run(device, plan_of(40), store, options);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->outcomes,
            (std::map<Outcome, std::size_t>{{Outcome::kMeasured, 34}, {Outcome::kRefused, 6}}));
  ASSERT_EQ(summary->reasons.size(), 1U);
  EXPECT_EQ(summary->reasons.at(Outcome::kRefused),
            (std::map<std::string, std::size_t>{{"it is even", 3}, {"it is odd", 3}}));
}

// Claim:  only the measures asked for are kept, and seeds depend on the request alone.
TEST(CampaignRun, KeepsTheMeasuresAskedForAndSeedsByRequest) {
  const Scratch scratch;
  FakeTarget device;
  RunOptions options;
  options.metrics = {"bandwidth_gbps"};
  options.repeats = 1;
  auto store = store_in(scratch);
  ASSERT_TRUE(run(device, plan_of(5), store, options));
  options.repeats = 2;
  const auto summary = run(device, plan_of(9), store, options);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->found, 5U);
  EXPECT_EQ(summary->measured, 13U);
  std::set<std::uint64_t> seeds;
  const auto observations = store.observations();
  ASSERT_TRUE(observations);
  for (const Observation& observation : *observations) {
    EXPECT_EQ(observation.measures.size(), 1U);
    EXPECT_EQ(observation.seed, request_seed(1, observation.asked, observation.repeat));
    seeds.insert(observation.seed);
  }
  EXPECT_EQ(seeds.size(), 18U);
}

// Claim:  Ctrl-C ends the run after the observation in hand, which is kept.
TEST(CampaignRun, StopsInOrderOnInterrupt) {
  const Scratch scratch;
  FakeTarget device;
  device.virtual_time = true;
  auto store = store_in(scratch);
  RunOptions options;
  options.progress = [](const Progress& progress) {
    if (progress.done == 10) ::raise(SIGINT);
  };
  const auto summary = run(device, plan_of(50), store, options);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_FALSE(summary->complete);
  EXPECT_EQ(summary->measured, 10U);
  EXPECT_EQ(store.keys()->size(), 10U);
  EXPECT_FALSE(target::interrupted());
}

// Claim:  a factor that the target does not vary is refused by name.
TEST(CampaignRun, RefusesFactorsTheTargetDoesNotVary) {
  Campaign campaign;
  campaign.factors = {Factor{.name = "warp_factor"}};
  const auto checked = check_factors(campaign, FakeTarget().info());
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("warp_factor"), std::string::npos);
  EXPECT_NE(checked.error().message.find("qp_count"), std::string::npos);
}

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
// twice. Oracle: the same campaign in one go; the command's answer depends on the request alone.
// What was
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
