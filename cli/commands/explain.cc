#include <memory>

#include "command.h"
#include "greynic/files/shipped.h"
#include "greynic/loop/explain_run.h"
#include "progress.h"

namespace greynic::cli {
namespace {

struct ExplainFlags {
  loop::ExplainRequest request;
  bool json = false;
};

int explain_command(const ExplainFlags& flags) {
  loop::ExplainRequest request = flags.request;
  request.file = files::shipped_file("campaigns", request.file);
  const auto explanation = loop::explain_file(request, terminal_talk());
  if (!explanation) return tell(explanation.error());
  put(flags.json ? causal::to_json_text(*explanation) : causal::to_text(*explanation));
  return explanation->walls.empty() ? 0 : 1;
}

}  // namespace

void add_explain(Program& program) {
  auto flags = std::make_shared<ExplainFlags>();
  loop::ExplainRequest& request = flags->request;
  Command command = program.command(
      "explain", "Walls, and the few settings that cause each",
      "  greynic explain run.db\n"
      "  greynic explain run.db --target twin:cx6      # orders the tests that it needs\n"
      "  greynic explain wall.json --target twin:cx6 --witness bad.json   # needs no run first\n"
      "  greynic explain run.db --confidence 0.999 --json");
  command.option("file", request.file, "Run file of `greynic run`, or a campaign").required();
  command.option("--target", request.target,
                 "Device to order tests from; with a run, they are stored with it");
  command.option("--witness", request.witness,
                 "JSON object factor -> level: the wall to explain, instead of looking for one");
  command.option(
      "--baseline", request.baseline,
      "JSON object factor -> level: what works well, instead of the campaign's baseline");
  command.option("--log", request.log,
                 "With a campaign: a run to read first; where there is none, the tests are kept "
                 "there");
  command.option("--seed", request.seed, "With a campaign: seed of the measurements");
  command.option("--confidence", request.options.confidence, "Confidence asked for")
      .range(0.5, 0.999999);
  command.option("--batch", request.options.batch, "Tests that are ordered together")
      .range(1, 1024);
  command
      .option("--finer", request.options.finer,
              "Halve each threshold between the campaign's levels to this share of it, 0.05 say")
      .range(0.0, 1.0);
  command.flag(
      "--hidden", request.options.hidden,
      "Of walls with more than ten settings, ask for causes that these settings heal, too");
  command.flag("--critical-path", request.options.critical_path,
               "Say which stage holds the worst wall, from host to virtual switch");
  command
      .option("--sensitivity", request.options.sensitivity_rows,
              "Rows of Sobol's design around the worst wall: how much each setting matters")
      .range(0, 100000);
  command.option("--most-tests", request.options.most_tests, "Tests to order at most");
  command
      .option("--most-repeats", request.options.most_repeats,
              "Repeats of one configuration at most")
      .range(2, 10000);
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return explain_command(*flags); });
}

}  // namespace greynic::cli
