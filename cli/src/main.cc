#include <cstdio>
#include <cstdlib>
#include <exception>

#include "commands.h"
#include "kinds.h"

int main(int argc, char** argv) {
  using namespace greynic::cli;
  CLI::App app{
      "greynic finds the scalability walls of an RDMA NIC, names their causes, fits laws that "
      "predict bandwidth and latency, and proposes a proven-equivalent rule layout that is "
      "faster."};
  app.name("greynic");
  app.set_version_flag("--version", GREYNIC_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 wall or regression found, 2 bad usage or input, 3 device or right "
      "missing, 4 our bug.\n\nStart here:\n  greynic devices\n  greynic tune --help");
  Program program;
  register_kinds();
  add_commands(app, program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "greynic: this is our bug: %s\n", error.what());
    return 4;
  }
  return program.exit_code;
}
