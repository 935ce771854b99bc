/// Hardware of few entries before a slow path: greynic's split beside CacheFlow's policy.
///
///     split_bench [--share 0.05] [--slow-path 100] [--flows 10] [--zipf 1.1] [--seed 1] [--new-flows 0] FILE...
///
/// Rules are drawn by Zipf's law, and each has --flows flows whose weights follow it too. Both sides see
/// the same flows before they choose. Then they are judged by those ("known"), and by as many other
/// flows of the same rules at the same weights ("new"), of which neither knew any. Costs are matchers
/// tried, and --slow-path for each packet that the hardware does not decide. CacheFlow's rules are laid
/// out by greynic's optimizer too, as a chain and with cuts, and the cheaper counts: what is compared is
/// the choice of entries. Verify judges each layout of ours.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "greynic/optimizer/split.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "hardware/cacheflow.h"

namespace {

using namespace greynic;

struct Settings {
  double share = 0.05;
  double slow_path = 100.0;
  int flows = 10;
  double zipf = 1.1;
  std::uint64_t seed = 1;
  double new_flows = 0.0;
};

/// The rules' weights come from `seed` alone, the flows in them from `flow_seed` too.
Traffic skewed(const RuleSet& rules, const Settings& settings, std::uint64_t flow_seed) {
  const Traffic weights = rules::zipf_traffic(rules, settings.zipf, settings.seed);
  Traffic traffic;
  double all = 0.0;
  for (int rank = 1; rank <= settings.flows; ++rank) all += std::pow(rank, -settings.zipf);
  for (int rank = 1; rank <= settings.flows; ++rank) {
    const Traffic packets =
        rules::uniform_traffic(rules, flow_seed * 1'000 + static_cast<std::uint64_t>(rank));
    const double part = std::pow(rank, -settings.zipf) / all;
    for (std::size_t i = 0; i < packets.flows.size(); ++i) {
      traffic.flows.push_back(packets.flows[i]);
      traffic.flows.back().weight = weights.flows[i].weight * part;
    }
  }
  return traffic;
}

struct Judged {
  double known = 0.0;
  double fresh = 0.0;
  double slow = 0.0;  ///< share of the known packets
};

/// CacheFlow's rules in the cheaper of two layouts of ours.
Judged cacheflow(const RuleSet& rules, const Traffic& known, const Traffic& fresh,
                 std::size_t entries, std::uint32_t slow_table, double slow_path) {
  std::vector<double> weight(rules.rules.size(), 0.0);
  const auto by = bench::deciders(rules, known);
  for (std::size_t i = 0; i < by.size(); ++i) {
    if (by[i] < weight.size()) weight[by[i]] += known.flows[i].weight;
  }
  const RuleSet held = bench::cacheflow_rules(rules, weight, entries, slow_table);
  Judged best{std::numeric_limits<double>::infinity(), 0.0, 0.0};
  for (const bool single : {true, false}) {
    optimizer::OptimizeOptions options;
    options.single_table = single;
    options.max_growth =
        std::max(1.0, static_cast<double>(entries) / static_cast<double>(held.rules.size()));
    const auto made = optimizer::optimize(held, known, options);
    if (!made) continue;
    Judged judged;
    double ignored = 0.0;
    judged.known = optimizer::split_cost(made->layout, known, slow_table, slow_path, judged.slow);
    judged.fresh = optimizer::split_cost(made->layout, fresh, slow_table, slow_path, ignored);
    if (judged.known < best.known) best = judged;
  }
  return best;
}

/// Prints a line; the two costs over CacheFlow's.
std::pair<double, double> compare(const std::string& file, const Settings& settings) {
  const auto rules = rules::read_rules(file);
  if (!rules) return fmt::print("{}\n", rules.error().message), std::pair(0.0, 0.0);
  const Traffic known = skewed(*rules, settings, 2 * settings.seed);
  const Traffic fresh = skewed(*rules, settings, 2 * settings.seed + 1);
  optimizer::SplitOptions options;
  options.entries =
      static_cast<std::size_t>(settings.share * static_cast<double>(rules->rules.size()));
  options.slow_path = settings.slow_path;
  options.new_flows = settings.new_flows;
  const std::clock_t start = std::clock();
  const auto ours = optimizer::split_hardware(*rules, known, options);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!ours) return fmt::print("{}: {}\n", file, ours.error().message), std::pair(0.0, 0.0);
  const auto verdict = verify::verify(*rules, ours->made.layout);
  double fresh_slow = 0.0;
  const double fresh_cost = optimizer::split_cost(optimizer::hardware_of(ours->made.layout), fresh,
                                                  ours->slow_table, settings.slow_path, fresh_slow);
  const Judged peer =
      cacheflow(*rules, known, fresh, options.entries, ours->slow_table, settings.slow_path);
  const std::string name = std::filesystem::path(file).filename().string();
  fmt::print(
      "{:<12} {:>6} {:>6} {:>8.2f} {:>8.2f} {:>6.3f} {:>8.2f} {:>8.2f} {:>6.3f} {:>6.2f} {:>6} "
      "{:>6.2f} {:>6} {:>6.2f} {}\n",
      name.substr(0, name.find('.')), rules->rules.size(), options.entries, peer.known, ours->cost,
      ours->cost / peer.known, peer.fresh, fresh_cost, fresh_cost / peer.fresh, 100.0 * peer.slow,
      ours->hyper_entries, 100.0 * ours->slow_share, ours->made.after.matchers, seconds,
      !verdict              ? verdict.error().message
      : verdict->equivalent ? "yes"
                            : "NO");
  std::fflush(stdout);
  return {ours->cost / peer.known, fresh_cost / peer.fresh};
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  const std::map<std::string, std::function<void(double)>> numbers = {
      {"--share", [&](double value) { settings.share = value; }},
      {"--slow-path", [&](double value) { settings.slow_path = value; }},
      {"--flows", [&](double value) { settings.flows = static_cast<int>(value); }},
      {"--zipf", [&](double value) { settings.zipf = value; }},
      {"--new-flows", [&](double value) { settings.new_flows = value; }},
      {"--seed", [&](double value) { settings.seed = static_cast<std::uint64_t>(value); }}};
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const auto number = numbers.find(arguments[i]);
    if (number != numbers.end() && i + 1 < count) {
      number->second(std::stod(arguments[++i]));
    } else {
      files.emplace_back(arguments[i]);
    }
  }
  fmt::print(
      "{:<12} {:>6} {:>6} {:>8} {:>8} {:>6} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {}\n",
      "set", "rules", "held", "cf", "ours", "ratio", "cf_new", "ours_new", "ratio", "cf_sl%",
      "hyper", "slow%", "match", "cpu_s", "equal");
  double known_logs = 0.0;
  double fresh_logs = 0.0;
  int sets = 0;
  for (const std::string& file : files) {
    const auto [known, fresh] = compare(file, settings);
    if (!(known > 0.0)) continue;
    known_logs += std::log(known);
    fresh_logs += std::log(fresh);
    ++sets;
  }
  if (sets > 0) {
    fmt::print("geometric mean over {} sets, of ours over CacheFlow: known {:.3f}, new {:.3f}\n",
               sets, std::exp(known_logs / sets), std::exp(fresh_logs / sets));
  }
  return 0;
}
