#include <fmt/core.h>

#include <memory>

#include "command.h"
#include "explaining.h"
#include "greynic/campaign/mask_target.h"
#include "greynic/results/store.h"
#include "greynic/target/interrupt.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string run;
  std::string target;
  causal::ExplainOptions options;
  bool json = false;
};

Result<causal::Explanation> explain_run(const Flags& flags) {
  if (flags.target.empty()) {
    auto store = results::RunStore::open_to_read(flags.run);
    if (!store) return pass_on(store);
    auto explanation = explain_stored(*store, flags.options);
    if (!explanation) return explanation;
    // For the report. A run that cannot be written is explained all the same.
    auto kept = store->keep(results::kHypotheses, causal::to_json_text(*explanation));
    if (!kept) say("not kept with the run: " + kept.error().message);
    return explanation;
  }
  auto device = target::open(flags.target);
  if (!device) return pass_on(device);
  auto reading = results::RunStore::open_to_read(flags.run);
  if (!reading) return pass_on(reading);
  auto store = results::RunStore::open_to_append(flags.run, reading->header());
  if (!store) return pass_on(store);
  const auto campaign = store->campaign();
  if (!campaign) return pass_on(campaign);
  auto ready = campaign::with_masks(std::move(*device), *campaign);
  if (!ready) return pass_on(ready);
  const target::InterruptGuard guard;
  return explain_on(**ready, *store, flags.options);
}

int explain_command(const Flags& flags) {
  const auto explanation = explain_run(flags);
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
