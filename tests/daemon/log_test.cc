#include "greynic/daemon/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace greynic::daemon {
namespace {

// Claim:  no text from outside makes a second line, moves a cursor or hides what stands beside it.
TEST(Log, CannotBeForged) {
  EXPECT_EQ(plain("lab7:41"), "lab7:41");
  EXPECT_EQ(plain("a\nagent: all is well"), "a\\x0aagent: all is well");
  EXPECT_EQ(plain("\x1b[2J\r\b"), "\\x1b[2J\\x0d\\x08");
  EXPECT_EQ(plain("\\x0a"), "\\x5cx0a") << "what looks escaped is not taken for it";
  EXPECT_EQ(plain(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(plain("\xe2\x80\xae"
                  "evil"),
            "\\xe2\\x80\\xae"
            "evil")
      << "nothing runs backwards";
  EXPECT_LE(plain(std::string(100000, '\n'), 100).size(), 110U);
  testing::internal::CaptureStderr();
  Log log("agent");
  log.line("a\nagent: all is well");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "agent: a\\x0aagent: all is well\n");
}

// Claim:  nobody fills the disk with lines: what is beyond the budget is counted and left out.
TEST(Log, IsBounded) {
  testing::internal::CaptureStderr();
  Log log("agent", {.lines = 5, .period = std::chrono::milliseconds(300)});
  for (int i = 0; i < 5000; ++i) log.line("knock");
  std::string written = testing::internal::GetCapturedStderr();
  const auto lines = [&] { return std::count(written.begin(), written.end(), '\n'); };
  EXPECT_GE(lines(), 5);
  EXPECT_LT(lines(), 2000) << "a machine so slow that 5,000 lines take 2 minutes";
}

// Claim:  whoever stops reading a log stops nobody who writes it, and is told of what was left out.
// Method: standard error is a pipe that is full, then empty again.
TEST(Log, ThatNobodyReadsStopsNothing) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  const int before = dup(STDERR_FILENO);
  Log log("agent", {.lines = 2, .period = std::chrono::milliseconds(0)});
  dup2(ends[1], STDERR_FILENO);
  log.line("a");
  std::string read_again(page.size(), '\0');
  while (read(ends[0], read_again.data(), read_again.size()) > 0) {
  }
  log.line("b");
  dup2(before, STDERR_FILENO);
  const ssize_t got = read(ends[0], read_again.data(), read_again.size());
  ASSERT_GT(got, 0);
  EXPECT_EQ(read_again.substr(0, static_cast<std::size_t>(got)),
            "agent: 1 lines were left out\nagent: b\n");
  for (const int one : {ends[0], ends[1], before}) close(one);
}

}  // namespace
}  // namespace greynic::daemon
