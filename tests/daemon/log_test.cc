#include "greynic/daemon/log.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace greynic::daemon
