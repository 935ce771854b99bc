#include "commands.h"

namespace greynic::cli {

void add_commands(CLI::App& root, Program& program) { add_devices(root, program); }

}  // namespace greynic::cli
