#include "greynic/core/observation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace greynic {
namespace {

// Claim: every outcome reads back from its name.
TEST(Observation, OutcomesReadBackFromTheirNames) {
  for (const Outcome outcome : {Outcome::kNotRun, Outcome::kMeasured, Outcome::kRefused,
                                Outcome::kFailed, Outcome::kTimedOut, Outcome::kTooShort}) {
    EXPECT_EQ(outcome_named(to_string(outcome)), outcome);
  }
  EXPECT_EQ(to_string(Outcome::kTooShort), "too_short");
  EXPECT_FALSE(outcome_named("slow"));
}

/// Every measure that a source file stores by a name of its own.
void collect_stored_names(const std::filesystem::path& file, std::set<std::string>& names) {
  std::ifstream in(file);
  std::ostringstream buffer;
  buffer << in.rdbuf();
  const std::string text = buffer.str();
  std::vector<std::regex> patterns = {std::regex(R"re(measures\["([a-z0-9_]+)"\])re"),
                                      std::regex(R"re(put\(observation,\s*"([a-z0-9_]+)")re")};
  if (file.parent_path().filename() == "perftest") {
    patterns.emplace_back(R"re("((bandwidth|message_rate|latency|transaction)_[a-z0-9_]+)")re");
  }
  for (const std::regex& pattern : patterns) {
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end;
         ++match) {
      names.insert((*match)[1]);
    }
  }
}

// Claim:  the table of measures knows every name that a target or an importer stores.
// Oracle: the source files themselves. Rates of counters (NAME_per_second) have no fixed names.
TEST(Measures, TheTableHoldsEveryNameThatIsStored) {
  std::set<std::string> names;
  for (const char* folder : {"harness", "results"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(GREYNIC_SOURCE_DIR) / folder)) {
      const std::string kind = entry.path().extension().string();
      if (kind == ".cc" || kind == ".h") collect_stored_names(entry.path(), names);
    }
  }
  names.erase("latency_us_deviation");  // becomes the standard error of latency_us_mean
  EXPECT_GE(names.size(), 28U) << "the patterns above no longer find where measures are stored";
  for (const std::string& name : names) EXPECT_NE(find_measure(name), nullptr) << name;
}

TEST(Measures, AreListedOnceAndReadAsTheirDirectionSays) {
  std::set<std::string_view> names;
  for (const MeasureInfo& info : known_measures()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.unit.empty() || info.meaning.empty()) << info.name;
  }
  EXPECT_EQ(better_direction("packet_cost_ns"), Better::kLess);
  EXPECT_EQ(better_direction("bandwidth_gbps"), Better::kMore);
  EXPECT_EQ(better_direction("megaflow_masks"), Better::kNeither);
  EXPECT_EQ(better_direction("hop_p99_us.web/eth0>host/br0"), Better::kLess) << "a family";
  EXPECT_FALSE(better_direction("hop_p99_us"));
  EXPECT_FALSE(better_direction("furlongs"));
  for (const Better better : {Better::kMore, Better::kLess}) {
    EXPECT_EQ(better_named(to_string(better)), better);
  }
}

}  // namespace
}  // namespace greynic
