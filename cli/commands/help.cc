#include "command.h"

namespace greynic::cli {
namespace {

struct HelpFlags {
  std::vector<std::string> command;
  std::string format = "text";
};

int help(const Program& program, const HelpFlags& flags) {
  const auto page = program.page(flags.command);
  if (!page) return tell(page.error());
  if (flags.format == "man") {
    std::vector<std::string> path = flags.command;
    path.insert(path.begin(), "greynic");
    put(man_page(path, *page));
  } else if (flags.format == "bash") {
    put(bash_completion(*program.page({})));
  } else {
    put(*program.help(flags.command));
  }
  return 0;
}

}  // namespace

void add_help(Program& program) {
  auto flags = std::make_shared<HelpFlags>();
  Command command =
      program.command("help", "What a command does, and its options",
                      "  greynic help plan\n"
                      "  greynic help agent init\n"
                      "  greynic help plan --format man > greynic-plan.1\n"
                      "  greynic help --format bash > /etc/bash_completion.d/greynic");
  command.option("command", flags->command, "The command; without one, what there is");
  command
      .option("--format", flags->format,
              "text; man: a page for man(1); bash: a completion script for all commands")
      .choices({"text", "man", "bash"});
  command.run([flags, &program] { return help(program, *flags); });
}

}  // namespace greynic::cli
