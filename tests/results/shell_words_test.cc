#include "greynic/results/shell_words.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace greynic::results {
namespace {

// Claim:  a shell takes a kept command apart into the arguments that it was made of.
// Oracle: the shell of this machine.
TEST(ShellWords, AShellReadsThemBack) {
  const std::array arguments = {
      "/usr/bin/greynic",        "run", "a campaign.json", "it's",  "$HOME",
      "'exec:./m.sh'",           "*",   "--set",           "a=1,2", "",
      "twin:cx6?defects=S1&more"};
  const std::string line = command_line(arguments);
  ASSERT_TRUE(line.starts_with("greynic run ")) << line;
  const std::string command = "printf '%s\\n'" + line.substr(std::string("greynic").size());
  FILE* shell = ::popen(command.c_str(), "r");
  ASSERT_NE(shell, nullptr);
  std::string read;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) read += static_cast<char>(c);
  ASSERT_EQ(::pclose(shell), 0);
  std::string wanted;
  for (std::size_t i = 1; i < arguments.size(); ++i) wanted += std::string(arguments[i]) + "\n";
  EXPECT_EQ(read, wanted);
}

}  // namespace
}  // namespace greynic::results
