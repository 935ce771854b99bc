#include "greynic/optimizer/optimize.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "greynic/files/core_json.h"
#include "greynic/loop/layout_cost.h"
#include "greynic/model/model.h"
#include "greynic/rules/traffic.h"
#include "progress.h"
#include "rule_options.h"
#include "sharing_advice.h"

namespace greynic::cli {
namespace {

struct OptimizeFlags {
  loop::RuleInput rules;
  std::string connections;
  std::vector<std::string> models;
  std::string at;
  Hop hop = Hop::kServerDecap;
  std::string traffic = "uniform";
  std::string out;
  std::uint64_t seed = 1;
  double growth = optimizer::OptimizeOptions{}.max_growth;
  bool single_table = false;
  bool as_json = false;
};

std::string cell(const optimizer::LayoutCost& cost, const std::string& name) {
  const auto found = cost.prediction->measures.find(name);
  if (found == cost.prediction->measures.end()) return "-";
  const auto& measure = found->second;
  return fmt::format("{:.4g} ({:.4g}..{:.4g}){}", measure.value, measure.low, measure.high,
                     cost.prediction->extrapolated ? " *" : "");
}

void print_table(const optimizer::OptimizedLayout& result) {
  const auto row = [](std::string_view what, const auto& before, const auto& after) {
    print("{:<28} {:>26} {:>26}\n", what, before, after);
  };
  const auto& before = result.before;
  const auto& after = result.after;
  row("", "before", "after");
  row("tables", before.tables, after.tables);
  row("matchers, in all tables", before.matchers, after.matchers);
  row("rules", before.rules, after.rules);
  row("matchers tried, mean", fmt::format("{:.2f}", before.matchers_tried),
      fmt::format("{:.2f}", after.matchers_tried));
  row("matchers tried, 99 %", before.matchers_tried_p99, after.matchers_tried_p99);
  row("matchers tried, most", before.most_matchers_tried, after.most_matchers_tried);
  row("jumps taken, mean", fmt::format("{:.2f}", before.jumps), fmt::format("{:.2f}", after.jumps));
  if (before.prediction && after.prediction) {
    for (const auto& [name, measure] : before.prediction->measures) {
      row("predicted " + name, cell(before, name), cell(after, name));
    }
    if (before.prediction->extrapolated || after.prediction->extrapolated) {
      print("* outside what the model was fitted to: read it as a direction\n");
    }
  }
  print("no single chain of these masks tries fewer than {:.2f} on the mean; it has {} or more\n",
        result.bound.matchers_tried, result.bound.matchers);
  print("equivalent: proven for {} layout tables over {} pairs of rules, {} regions\n",
        result.proof.tables, result.proof.pairs, result.proof.regions);
  for (const std::string& note : result.notes) print("{}\n", note);
}

int run(const OptimizeFlags& flags) {
  if (!flags.connections.empty()) {
    return advise_sharing({flags.connections, flags.models, flags.out, flags.as_json});
  }
  if (flags.rules.path.empty()) {
    return tell({ErrorCode::kBadInput, "name a rule file, or --connections MATRIX.json"});
  }
  const auto at = parse_configuration(flags.at);
  if (!at) return tell(at.error());
  std::unique_ptr<model::Model> model;
  optimizer::OptimizeOptions options;
  options.seed = flags.seed;
  options.max_growth = flags.growth;
  options.single_table = flags.single_table;
  if (flags.models.size() > 1) {
    return tell({ErrorCode::kBadInput, "rules take one --model; only --connections takes several"});
  }
  if (!flags.models.empty()) {
    auto loaded = model::load(flags.models.front());
    if (!loaded) return tell(loaded.error());
    model = std::move(*loaded);
    options.cost = optimizer::mask_cost(*model, *at, flags.hop);
  }
  const auto rules = loop::load_rules(flags.rules, terminal_talk());
  if (!rules) return tell(rules.error());
  const auto traffic = rules::traffic_for(flags.traffic, *rules, flags.seed);
  if (!traffic) return tell(traffic.error());
  const auto result = optimizer::optimize(*rules, *traffic, options);
  if (!result) return tell(result.error());
  if (!flags.out.empty()) {
    if (const auto written = files::write_layout(result->layout, flags.out); !written) {
      return tell(written.error());
    }
  }
  if (flags.as_json) {
    put_json(loop::to_json(*result, flags.rules.path, flags.traffic));
  } else {
    print_table(*result);
  }
  return 0;
}

}  // namespace

void add_optimize(Program& program) {
  auto flags = std::make_shared<OptimizeFlags>();
  Command command = program.command(
      "optimize",
      "An equivalent rule layout that tries fewer matchers, proven; or how connections share QPs",
      "  greynic optimize filters.rules --model published:cx6 -o layout.json\n"
      "  greynic optimize flows.txt --traffic zipf:1.1 --growth 1.1 --json\n"
      "  greynic optimize flows.txt --model model.json --at "
      "operation=SEND,message_bytes=8388608 \\\n"
      "                   --hop client_encap --traffic traffic.json -o layout.json\n"
      "  greynic optimize --connections connections.json --model model.json -o advice.json");
  const Option rules = add_rule_input(command, flags->rules);
  command
      .option("--connections", flags->connections,
              "Connections between hosts (docs/formats/connections.md): whether and how they share "
              "QPs, for `greynic broker --advice`")
      .excludes(rules);
  command.option("--model", flags->models,
                 "Model file, or published:cx4 cx5 cx6 cx7 bf3 e810; without it nothing is "
                 "predicted. With --connections it may come again, for other message sizes");
  command.option("--at", flags->at, "Configuration to predict for: factor=level,factor=level");
  add_hop(command, flags->hop);
  command.option("--traffic", flags->traffic,
                 "uniform (one packet inside each rule), zipf:EXPONENT, or a traffic file");
  command.option("-o,--out", flags->out, "Write the layout, or the advice, here").writes();
  command.option("--seed", flags->seed, "Seed of the made-up traffic and of the search");
  command.option("--growth", flags->growth,
                 "The layout may have this many times the rules of the input, jumps included");
  command.flag("--single-table", flags->single_table, "No jumps: one chain for each table");
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
