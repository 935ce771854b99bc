#include "command.h"

#include <fmt/format.h>

#include <cstdio>

namespace greynic::cli {

CLI::App* add_command(CLI::App& root, const std::string& name, const std::string& summary,
                      const std::string& examples) {
  CLI::App* command = root.add_subcommand(name, summary);
  command->footer("\nExamples:\n" + examples);
  return command;
}

int tell(const Error& error) {
  fmt::print(stderr, "greynic: {}\n", error.message);
  return exit_code(error.code);
}

void say(std::string_view line) { fmt::print(stderr, "{}\n", line); }

}  // namespace greynic::cli
