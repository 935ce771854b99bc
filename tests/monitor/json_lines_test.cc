#include "greynic/monitor/json_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "host_fixture.h"
#include "program.h"

namespace greynic::monitor {
namespace {

using nlohmann::json;
using zero::Program;

class Lines : public HostFixture {
 protected:
  std::string path() const { return folder_ + "/lines"; }
  std::shared_ptr<JsonLines> open(const std::string& path, std::size_t most_bytes = 64 << 20) {
    auto made = JsonLines::open({path, most_bytes});
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::shared_ptr<JsonLines>(std::move(*made)) : nullptr;
  }
  /// Each line, parsed; a line that is no JSON fails the test.
  static std::vector<json> lines_of(const std::string& path) {
    std::vector<json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(json::parse(line, nullptr, false));
      EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
  }
};

series::Group numbers(std::uint32_t count) {
  series::Group group{"h", "program", 1, {}};
  group.fields.push_back({"n", "a=\"1\"", "B", "", 1, false, false, count, 0});
  return group;
}

/// A pipe in the place of stdout until this goes.
class PipedStdout {
 public:
  PipedStdout() {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    std::fflush(stdout);
    kept_ = dup(STDOUT_FILENO);
    dup2(ends_[1], STDOUT_FILENO);
    close(ends_[1]);
  }
  ~PipedStdout() {
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
    hang_up();
  }
  int reading() const { return ends_[0]; }
  void hang_up() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }

 private:
  std::array<int, 2> ends_{};
  int kept_ = -1;
};

// Claim:  the lines hold each sample that the store holds, exactly, and no other; histograms and gaps
//         are there too, and what a second run writes comes behind.
// Oracle: the store.
TEST_F(Lines, HoldWhatTheStoreHolds) {
  start_agent();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  for (int run = 0; run < 2; ++run) {
    CollectorOptions options;
    options.lines = open(path());
    start_collector({by_agent("h")}, options);
    ASSERT_TRUE(wait_for([&] { return collector_->counts().looks > 60; })) << told();
    if (run == 1) {
      stop_agent();
      ASSERT_TRUE(wait_for([&] { return !collector_->hosts()[0].up; }));
    }
    stop_collector();
    options.lines->finish(std::chrono::seconds(20));
    EXPECT_EQ(options.lines->counts().lost, 0U);
  }
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  std::map<Key, std::string> expected, found;
  ASSERT_TRUE(series::visit_points(store(), {}, [&](const series::Point& point) {
    expected[{point.field->name, point.field->labels, point.time_ns}] =
        series::text_of(*point.field, point.value);
  }));
  std::size_t histograms = 0, gaps = 0;
  for (const json& line : lines_of(path())) {
    ASSERT_EQ(line.at("host"), "h");
    if (line.contains("reason")) {
      ++gaps;
      EXPECT_GT(line.at("end_ns"), line.at("begin_ns"));
    } else if (line.contains("count")) {
      ++histograms;
      EXPECT_GE(line.at("p99"), line.at("p50"));
    } else {
      found[{line.at("name"), line.at("labels"), line.at("time_ns")}] = line.at("value").dump();
    }
  }
  EXPECT_GT(expected.size(), 200U);
  EXPECT_EQ(found, expected);
  EXPECT_GT(histograms, 0U);
  EXPECT_EQ(gaps, series::gaps_of(store(), {})->size());
  EXPECT_GT(gaps, 0U);
}

// Claim:  numbers keep all their digits, what is no number is null, and names are spelled out.
TEST_F(Lines, AreExact) {
  const auto lines = open(path());
  series::Group group{"host \"1\"", "a\\b", 1, {}};
  group.fields.push_back({"u", "", "", "", 1, false, false, 1, 0});
  group.fields.push_back({"i", "", "", "", 2, false, true, 1, 0});
  group.fields.push_back({"f", "", "", "", 2, true, false, 3, 0});
  const std::vector<std::uint64_t> values = {
      std::numeric_limits<std::uint64_t>::max(), static_cast<std::uint64_t>(INT64_MIN),
      std::bit_cast<std::uint64_t>(0.1), std::bit_cast<std::uint64_t>(std::nan("")),
      std::bit_cast<std::uint64_t>(-std::numeric_limits<double>::infinity())};
  lines->sample(1, group, 1234567890123456789, values);
  lines->finish(std::chrono::seconds(20));
  const auto found = lines_of(path());
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0].at("value"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(found[0].at("time_ns"), 1234567890123456789);
  EXPECT_EQ(found[0].at("host"), "host \"1\"");
  EXPECT_EQ(found[0].at("program"), "a\\b");
  EXPECT_EQ(found[1].at("value"), INT64_MIN);
  EXPECT_EQ(found[2].at("value"), 0.1);
  EXPECT_EQ(found[2].at("labels"), "index=\"0\"");
  EXPECT_TRUE(found[3].at("value").is_null());
  EXPECT_TRUE(found[4].at("value").is_null());
}

// Claim:  a reader that hangs up ends neither the collector nor its store, and is told once; where the
//         lines were all that was wanted, the run ends and says why.
TEST_F(Lines, ThatNobodyReadsEndNoCollector) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  start_agent();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  {
    PipedStdout piped;
    CollectorOptions options;
    options.lines = open("-");
    start_collector({by_agent("h")}, options);
    char byte = 0;
    ASSERT_EQ(read(piped.reading(), &byte, 1), 1);
    EXPECT_EQ(byte, '{');
    piped.hang_up();
    ASSERT_TRUE(wait_for([&] { return was_told("no more lines are written there"); })) << told();
    const std::uint64_t stored = collector_->counts().acknowledged;
    EXPECT_TRUE(wait_for([&] { return collector_->counts().acknowledged > stored + 200; }));
    stop_collector();
  }
  PipedStdout piped;
  piped.hang_up();
  CollectorOptions options;
  options.lines = open("-");
  options.ends_with_lines = true;
  auto collector = Collector::open({by_agent("h")}, options);
  ASSERT_TRUE(collector);
  const std::atomic<bool> never{false};
  const auto ended = (*collector)->run(never);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kIo);
  EXPECT_NE(ended.error().message.find("standard output"), std::string::npos);
  std::signal(SIGPIPE, before);
}

// Claim:  a reader that is slow holds nobody up and gets whole lines: what finds no room is left out and
//         counted, and what is written is what was given, in its order.
TEST_F(Lines, ForASlowReaderAreLeftOutWhole) {
  constexpr std::uint32_t kWidth = 100;
  constexpr std::int64_t kSamples = 3000;
  const series::Group group = numbers(kWidth);
  const std::vector<std::uint64_t> values(kWidth, 7);
  std::string text;
  JsonLines::Counts counts;
  {
    PipedStdout piped;
    const auto lines = open("-", 1 << 18);
    for (std::int64_t time = 1; time <= kSamples; ++time) lines->sample(1, group, time, values);
    std::thread reading([&] {
      std::array<char, 8192> some{};
      for (ssize_t got = 0; (got = read(piped.reading(), some.data(), some.size())) > 0;) {
        text.append(some.data(), static_cast<std::size_t>(got));
        if (text.find("\"time_ns\":9999") != std::string::npos && text.back() == '\n') break;
      }
    });
    // Room again: the last one comes through.
    EXPECT_TRUE(wait_for([&] { return lines->counts().written > 0; }));
    for (int i = 0; i < 1000; ++i) {
      const auto lost = lines->counts().lost;
      lines->sample(1, group, 9999, values);
      if (lines->counts().lost == lost) break;
      usleep(10000);
    }
    lines->finish(std::chrono::seconds(20));
    counts = lines->counts();
    reading.join();
  }
  EXPECT_GT(counts.lost, 0U);
  EXPECT_GT(counts.written, 0U);
  std::ofstream(path()) << text;
  std::int64_t last = 0;
  const auto found = lines_of(path());
  EXPECT_LE(found.size(), counts.written);
  EXPECT_GE(found.size() + kWidth, counts.written);
  for (const json& line : found) {
    EXPECT_GE(line.at("time_ns").get<std::int64_t>(), last);
    last = line.at("time_ns");
    EXPECT_EQ(line.at("value"), 7);
  }
  EXPECT_EQ(last, 9999);
}

// Claim:  a full disk loses lines and says so; a file that cannot be made is refused; a line that was
//         torn by a kill stays one of its own.
TEST_F(Lines, SurviveFullDisksAndTornFiles) {
  const series::Group group = numbers(1);
  const std::vector<std::uint64_t> values = {1};
  const auto full = open("/dev/full");
  full->sample(1, group, 5, values);
  EXPECT_TRUE(wait_for([&] { return !full->counts().last_failure.empty(); }));
  full->finish(milliseconds(300));
  EXPECT_EQ(full->counts().lost, 1U);
  EXPECT_NE(full->counts().last_failure.find("No space"), std::string::npos);
  const auto refused = JsonLines::open({folder_ + "/no/such/folder"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  std::ofstream(path()) << R"({"host":"h","na)";
  const auto lines = open(path());
  lines->sample(1, group, 6, values);
  lines->finish(std::chrono::seconds(20));
  std::ifstream file(path());
  std::string torn, whole;
  std::getline(file, torn);
  std::getline(file, whole);
  EXPECT_EQ(torn, R"({"host":"h","na)");
  EXPECT_EQ(json::parse(whole).at("time_ns"), 6);
}

}  // namespace
}  // namespace greynic::monitor
