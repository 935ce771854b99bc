#pragma once

/// What every subcommand shares: how it is added, how an error is told, how people see progress.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::cli {

/// The one state of the program: what it will exit with. 0 done, 1 wall or regression found.
struct Program {
  int exit_code = 0;
};

/// Adds a subcommand. `examples` end its --help, one command a line.
CLI::App* add_command(CLI::App& root, const std::string& name, const std::string& summary,
                      const std::string& examples);

/// Tells an error on stderr and gives the exit code that goes with it:
/// `return program.exit_code = tell(error), void();` is how callbacks end.
[[nodiscard]] int tell(const Error& error);

/// A warning or a hint on stderr, for people.
void say(std::string_view line);

/// Infeasible tuples and what forbids them, one a line on stderr, and how many more there are that
/// were not explained.
void tell_infeasible(const std::vector<std::string>& lines, std::size_t left);

}  // namespace greynic::cli
