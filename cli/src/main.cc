#include "command.h"
#include "commands.h"
#include "kinds.h"

int main(int argc, char** argv) {
  greynic::cli::register_kinds();
  greynic::cli::Program program;
  greynic::cli::add_commands(program);
  return program.run(argc, argv);
}
