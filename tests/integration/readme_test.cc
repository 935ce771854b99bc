#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "greynic/capture/capture.h"
#include "program.h"

namespace greynic::integration {
namespace {

struct Line {
  int number = 0;
  std::string text;
};

/// The command lines of a Markdown page: what its code blocks, fenced or indented by four blanks,
/// begin with `greynic` or a shell loop around it. Continued lines are joined.
std::vector<Line> command_lines(const std::string& path) {
  std::vector<Line> found;
  std::istringstream page(text_of(path));
  bool fenced = false;
  std::string text;
  for (int number = 1; std::getline(page, text); ++number) {
    if (text.starts_with("```")) fenced = !fenced;
    const bool continues = !found.empty() && found.back().text.ends_with('\\');
    if (continues) {
      found.back().text.pop_back();
      found.back().text += text;
      continue;
    }
    if (!fenced && !text.starts_with("    ")) continue;
    text.erase(0, text.find_first_not_of(' '));
    if (text.starts_with("$ ")) text.erase(0, 2);
    if (text.starts_with("greynic ") || text.starts_with("for ")) found.push_back({number, text});
  }
  return found;
}

/// The commands that a line calls: "run", or "agent init".
std::vector<std::string> commands_in(const std::string& line) {
  static const std::regex call(
      R"(\bgreynic ((?:trace )?[a-z-]+)( (?:init|perftest|collect|show))?(?= |$))");
  std::vector<std::string> commands;
  for (std::sregex_iterator it(line.begin(), line.end(), call), end; it != end; ++it) {
    commands.push_back((*it)[1].str() + (*it)[2].str());
  }
  return commands;
}

/// Every option in the line is one of its command.
void expect_options_exist(const Folder& folder, const std::string& line) {
  static const std::regex option(R"((?:^|\s)(--[a-z-]+))");
  for (const std::string& command : commands_in(line)) {
    const Outcome help = greynic(folder, "help " + command);
    EXPECT_EQ(help.exit_code, 0) << line << "\n" << help.err;
    for (std::sregex_iterator it(line.begin(), line.end(), option), end; it != end; ++it) {
      EXPECT_NE(help.out.find((*it)[1].str()), std::string::npos)
          << line << "\nhas the option " << (*it)[1] << ", which `greynic help " << command
          << "` does not";
    }
  }
}

/// Commands of optional parts that this build does not have.
std::set<std::string> not_built(const Folder& folder) {
  std::set<std::string> missing;
  for (const char* command : {"report", "agent", "trace", "broker"}) {
    if (greynic(folder, std::string("help ") + command).exit_code != 0) missing.insert(command);
  }
  if (!capture::can_read_captures()) missing.insert("bursts");
  return missing;
}

/// Lines for a device or a folder of the system, which no test may touch.
bool needs_a_lab(const std::string& line) {
  static const std::regex lab(
      R"(--target '?(ovs|flows|verbs):|agent --device|greynic trace |greynic broker | /etc/)");
  return std::regex_search(line, lab);
}

/// Runs shell lines in the folder with the program on the path.
Outcome shell(const Folder& folder, const std::string& lines) {
  const std::string program = GREYNIC_BINARY;
  std::ofstream(folder / "line.sh")
      << "cd " << folder.path() << "\nexport PATH=" << program.substr(0, program.rfind('/'))
      << ":$PATH\n"
      << lines << "\ncode=$?\nwait\nexit $code\n";
  const int status = std::system(
      ("bash " + (folder / "line.sh") + " >" + (folder / "out.txt") + " 2>" + (folder / "err.txt"))
          .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder / "out.txt"),
          text_of(folder / "err.txt")};
}

// Claim:  the commands in the README work as they stand there, in order, in a fresh folder.
// Oracle: the exit codes that it documents: 0, or 1 for a wall, a difference or a regression.
// Method: each line runs in bash. Of lines that need a lab, and of commands that this build does
//         not have, only the options are held against the program, and the line is shown.
TEST(Readme, CommandsWorkInOrderInAFreshFolder) {
  const Folder folder;
  const std::set<std::string> missing = not_built(folder);
  const auto lines = command_lines(kSource + "/README.md");
  ASSERT_GT(lines.size(), 15U);
  std::string background;
  for (const Line& line : lines) {
    const auto commands = commands_in(line.text);
    ASSERT_FALSE(commands.empty()) << "README.md:" << line.number << ": " << line.text;
    if (missing.contains(commands[0].substr(0, commands[0].find(' ')))) {
      std::printf("skipped, not in this build: README.md:%d: %s\n", line.number, line.text.c_str());
      continue;
    }
    expect_options_exist(folder, line.text);
    if (needs_a_lab(line.text)) {
      std::printf("options checked only: README.md:%d: %s\n", line.number, line.text.c_str());
      continue;
    }
    if (line.text.ends_with("&")) {
      background += line.text + "\n";
      continue;
    }
    const Outcome ran = shell(folder, background + line.text);
    background.clear();
    // Some virtual machines have no virtual time (tests/lab says which).
    if (ran.exit_code == 3 && ran.err.find("time-stamp counter") != std::string::npos) {
      std::printf("not on this machine: README.md:%d: %s\n", line.number, line.text.c_str());
      continue;
    }
    EXPECT_TRUE(ran.exit_code == 0 || ran.exit_code == 1)
        << "README.md:" << line.number << ": " << line.text << "\nexits " << ran.exit_code << "\n"
        << ran.err;
  }
}

// Claim:  every command's --help ends with examples, and they name commands and options that exist.
// Oracle: the help of the command that the example calls.
TEST(Help, ExamplesNameCommandsAndOptionsThatExist) {
  const Folder folder;
  const std::string all = greynic(folder, "help").out;
  const auto start = all.find("Subcommands:\n");
  ASSERT_NE(start, std::string::npos) << all;
  std::istringstream table(all.substr(start + 13));
  std::string row;
  int commands = 0;
  while (std::getline(table, row) && row.starts_with("  ")) {
    if (row[2] == ' ') continue;  // the rest of a long summary
    const std::string name = row.substr(2, row.find(' ', 2) - 2);
    ++commands;
    const std::string help = greynic(folder, "help " + name).out;
    const auto examples = help.find("\nExamples:\n");
    ASSERT_NE(examples, std::string::npos) << name;
    std::istringstream lines(
        std::regex_replace(help.substr(examples + 11), std::regex(R"(\\\n *)"), ""));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      if (line.empty()) break;
      ASSERT_FALSE(commands_in(line).empty()) << name << ": " << line;
      expect_options_exist(folder, line);
    }
    EXPECT_GT(count, 0) << name;
  }
  EXPECT_GT(commands, 15);
}

}  // namespace
}  // namespace greynic::integration
