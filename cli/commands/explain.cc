#include <fmt/core.h>

#include <memory>

#include "command.h"
#include "greynic/loop/explain_run.h"
#include "progress.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string run;
  std::string target;
  causal::ExplainOptions options;
  bool json = false;
};

int explain_command(const Flags& flags) {
  const auto explanation =
      loop::explain_file(flags.run, flags.target, flags.options, terminal_talk());
  if (!explanation) return tell(explanation.error());
  fmt::print("{}", flags.json ? causal::to_json_text(*explanation) : causal::to_text(*explanation));
  return explanation->walls.empty() ? 0 : 1;
}

}  // namespace

void add_explain(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.command(
      "explain", "Walls of a run and the few settings that cause each",
      "  greynic explain run.db\n"
      "  greynic explain run.db --target twin:cx6      # orders the tests that it needs\n"
      "  greynic explain run.db --confidence 0.999 --json");
  command.option("run", flags->run, "Run file of `greynic run`").required();
  command.option("--target", flags->target,
                 "Device to order further tests from; they are stored with the run");
  command.option("--confidence", flags->options.confidence, "Confidence asked for")
      .range(0.5, 0.999999);
  command.option("--most-tests", flags->options.most_tests, "Tests to order at most");
  command
      .option("--most-repeats", flags->options.most_repeats, "Repeats of one configuration at most")
      .range(2, 10000);
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return explain_command(*flags); });
}

}  // namespace greynic::cli
