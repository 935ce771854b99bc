#include "command.h"
#include "commands.h"
#include "greynic/loop/kinds.h"
#include "progress.h"
#include "talk.h"

int main(int argc, char** argv) {
  greynic::cli::hold_standard_streams();
  greynic::loop::register_kinds(greynic::cli::terminal_talk());
  greynic::cli::Program program;
  greynic::cli::add_commands(program);
  return program.run(argc, argv);
}
