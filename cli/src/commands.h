#pragma once

/// The subcommands, each defined in cmd_<name>.cc; commands.cc lists them in the order of --help.

#include "command.h"

namespace greynic::cli {

/// Adds all of them.
void add_commands(CLI::App& root, Program& program);

void add_devices(CLI::App& root, Program& program);

}  // namespace greynic::cli
