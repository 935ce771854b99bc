/// Where the packets of a pipeline try their matchers, table by table:
///
///     pipeline_bench FILE [--growth G] [--apart] [--last-table N] [--made-for SEED] [--packets N] [SEED...]
///
/// The layout is made for the packets of seed 1, or of SEED, N inside each rule (3, as `greynic optimize` draws); with --apart no tables are joined;
/// with --last-table there are no ids beyond, and of protocols no part is looked at, as in Open vSwitch (253).
/// Then it is judged by those packets, and by packets that it was not made for, one inside each rule, of each further
/// seed. Tables are listed for the last. A visit is one packet at one table of the rules; what is tried in tables
/// behind it counts there.

#include <fmt/core.h>

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "src/counted/walk.h"

namespace {

using namespace greynic;

struct Visits {
  double share = 0.0;
  double tried = 0.0;
  double hops = 0.0;
};

void print_tables(const RuleSet& rules, const Traffic& traffic, const Layout& layout) {
  std::map<std::uint32_t, std::size_t> rules_of;
  for (const FlowRule& rule : rules.rules) ++rules_of[rule.table];
  std::map<std::uint32_t, Visits> visits;
  std::vector<std::uint32_t> at(traffic.flows.size(), 0);
  const double part = 1.0 / static_cast<double>(traffic.flows.size());
  optimizer::walk(layout, traffic, [&](const optimizer::Step& step) {
    if (step.table == nullptr) return;
    if (rules_of.contains(step.table->id)) {
      at[step.flow] = step.table->id;
      visits[step.table->id].share += part;
    } else {
      visits[at[step.flow]].hops += part;
    }
    visits[at[step.flow]].tried += part * static_cast<double>(step.tried);
  });
  fmt::print("{:>6} {:>7} {:>8} {:>8} {:>8} {:>8}\n", "table", "rules", "visits", "tried",
             "a visit", "hops");
  for (const auto& [id, row] : visits) {
    fmt::print("{:>6} {:>7} {:>8.4f} {:>8.4f} {:>8.2f} {:>8.4f}\n", id, rules_of[id], row.share,
               row.tried, row.tried / row.share, row.hops);
  }
}

double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

struct Settings {
  std::string file;
  optimizer::OptimizeOptions options;
  std::uint64_t made_for = 1;
  std::size_t packets = 3;
  std::vector<std::uint64_t> judged_by;
};

int run(const Settings& settings) {
  auto read = rules::read_rules(settings.file);
  if (!read) return fmt::print("{}\n", read.error().message), 1;
  const auto resolved = rules::resolve_conjunctions(std::move(*read), 1'000'000);
  if (!resolved) return fmt::print("{}\n", resolved.error().message), 1;
  Traffic judging = rules::zipf_traffic(*resolved, 0.0, settings.made_for, settings.packets);
  auto start = std::clock();
  const auto made = optimizer::optimize(*resolved, judging, settings.options);
  const double search = seconds_since(start);
  if (!made) return fmt::print("{}\n", made.error().message), 1;
  start = std::clock();
  const auto verdict = verify::verify(*resolved, made->layout);
  fmt::print("{} rules, {} in the layout; verify: {}, {:.2f} CPU s; search {:.1f} CPU s\n",
             resolved->rules.size(), made->after.rules,
             !verdict              ? verdict.error().message
             : verdict->equivalent ? "equivalent"
                                   : "different",
             seconds_since(start), search);
  const auto print_cost = [](const std::string& packets, const optimizer::LayoutCost& cost) {
    fmt::print("{:<14} tried {:.2f}, 99 % {}, most {}, jumps {:.2f}\n", packets,
               cost.matchers_tried, cost.matchers_tried_p99, cost.most_matchers_tried, cost.jumps);
  };
  print_cost("in order", made->before);
  print_cost("made for", made->after);
  for (const std::uint64_t seed : settings.judged_by) {
    judging = rules::uniform_traffic(*resolved, seed);
    print_cost(fmt::format("seed {}", seed), optimizer::cost_of(made->layout, judging));
  }
  print_tables(*resolved, judging, made->layout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--growth" && i + 1 < argc) {
      settings.options.max_growth = std::stod(argv[++i]);
    } else if (argument == "--made-for" && i + 1 < argc) {
      settings.made_for = std::stoull(argv[++i]);
    } else if (argument == "--packets" && i + 1 < argc) {
      settings.packets = std::stoull(argv[++i]);
    } else if (argument == "--last-table" && i + 1 < argc) {
      settings.options.limits.last_table = static_cast<std::uint32_t>(std::stoul(argv[++i]));
      settings.options.limits.whole_fields = {MatchField::kIpProtocol, MatchField::kEtherType};
    } else if (argument == "--apart") {
      settings.options.join_tables = false;
    } else if (settings.file.empty()) {
      settings.file = argument;
    } else {
      settings.judged_by.push_back(std::stoull(argument));
    }
  }
  if (settings.file.empty()) {
    fmt::print(
        "usage: pipeline_bench FILE [--growth G] [--apart] [--last-table N] [--made-for SEED] "
        "[--packets N] "
        "[SEED...]\n");
    return 2;
  }
  return run(settings);
}
