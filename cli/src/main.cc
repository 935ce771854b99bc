#include "command.h"
#include "commands.h"
#include "greynic/loop/kinds.h"
#include "progress.h"

int main(int argc, char** argv) {
  greynic::loop::register_kinds(greynic::cli::terminal_talk());
  greynic::cli::Program program;
  greynic::cli::add_commands(program);
  return program.run(argc, argv);
}
