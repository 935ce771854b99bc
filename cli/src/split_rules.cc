#include "split_rules.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"
#include "greynic/loop/layout_cost.h"

namespace greynic::cli {
namespace {

std::size_t entries_of(const SplitFlags& flags, std::size_t rules) {
  if (flags.entries) return *flags.entries;
  return static_cast<std::size_t>(std::floor(flags.share * static_cast<double>(rules)));
}

/// Devices count whole seconds.
std::uint32_t idle_seconds_of(const SplitFlags& flags) {
  if (!flags.idle) return 0;
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(*flags.idle).count());
}

Result<void> read_hardware(const std::string& text, SplitFlags& flags) {
  constexpr double kPercent = 100.0;
  const bool share = text.ends_with('%');
  const char* const end = text.data() + text.size() - (share ? 1 : 0);
  double number = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  constexpr double kMostEntries = 1e9;
  const bool whole = share || number == std::floor(number);
  if (error != std::errc{} || stop != end || !(number > 0.0) || !whole ||
      number > (share ? kPercent : kMostEntries)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{} is no number of entries; say 500, or 5% of the rules", text));
  }
  if (share) {
    flags.share = number / kPercent;
  } else {
    flags.entries = static_cast<std::size_t>(number);
  }
  return {};
}

}  // namespace

Option add_splitting(Command& command, SplitFlags& flags) {
  const Option hardware = command.option(
      "--hardware", [&flags](const std::string& text) { return read_hardware(text, flags); },
      "The hardware holds so many entries (500, or 5% of the rules): those that save most go "
      "there, "
      "hot flows in front, and the rest to a slow path of software");
  command
      .option("--slow-path", flags.slow_path,
              "What a packet pays that goes to the slow path, in matchers tried")
      .range(1.0, 1e9)
      .needs(hardware);
  command
      .option(
          "--new-flows", flags.new_flows,
          "Share of the packets to come, 0 to 1, that is of flows which --traffic does not have; "
          "entries are then chosen for these, too")
      .range(0.0, 1.0)
      .needs(hardware);
  command
      .option("--idle", flags.idle,
              "Time without a packet after which an entry of a hot flow may leave the hardware "
              "(10s); without it they stay")
      .needs(hardware);
  return hardware;
}

Result<optimizer::Split> split_rules(const SplitFlags& flags, const RuleSet& rules,
                                     const Traffic& traffic,
                                     const optimizer::OptimizeOptions& search) {
  optimizer::SplitOptions options;
  options.entries = entries_of(flags, rules.rules.size());
  options.slow_path = flags.slow_path;
  options.new_flows = flags.new_flows;
  options.idle_seconds = idle_seconds_of(flags);
  options.search = search;
  return optimizer::split_hardware(rules, traffic, options);
}

std::string split_text(const SplitFlags& flags, const optimizer::Split& split) {
  const optimizer::LayoutCost& hardware = split.made.after;
  std::string text =
      fmt::format("hardware: {} entries of {}, {} matchers in {} tables\n", hardware.rules,
                  entries_of(flags, split.made.rules_given), hardware.matchers, hardware.tables);
  if (split.hyper_entries > 0) {
    text += fmt::format(
        "hyper mask: {} flows, {:.1f} % of the packets; without it the cost would be {:.2f}\n",
        split.hyper_entries, 100.0 * split.hyper_share, split.cost_without_hyper);
  } else {
    text += "hyper mask: none, as it would save 5 % of the cost or less\n";
  }
  text += fmt::format(
      "matchers tried in hardware: {:.2f} on the mean, {} at 99 %, {} at most\n"
      "slow path: {:.2f} % of the packets, {:.6g} matchers each\n"
      "cost: {:.2f} matchers a packet (all on the slow path: {:.6g})\n",
      hardware.matchers_tried, hardware.matchers_tried_p99, hardware.most_matchers_tried,
      100.0 * split.slow_share, flags.slow_path, split.cost, flags.slow_path);
  text += fmt::format("for new flows of the same rules: {:.2f}\n", split.cost_for_new);
  for (const auto* cost : {&split.made.before, &split.made.after}) {
    if (!cost->prediction) continue;
    for (const auto& [name, measure] : cost->prediction->measures) {
      text += fmt::format(
          "predicted {}, {}: {:.4g} ({:.4g}..{:.4g}){}\n", name,
          cost == &split.made.before ? "all rules in hardware, in order" : "split", measure.value,
          measure.low, measure.high,
          cost->prediction->extrapolated ? ", outside what the model was fitted to" : "");
    }
  }
  text +=
      fmt::format("equivalent: hardware and slow path proven over {} pairs of rules, {} regions\n",
                  split.made.proof.pairs, split.made.proof.regions);
  for (const std::string& note : split.made.notes) text += note + "\n";
  return text;
}

std::string split_json(const SplitFlags& flags, const optimizer::Split& split,
                       const std::string& rules, const std::string& traffic) {
  nlohmann::json document = loop::to_json(split.made, rules, traffic);
  document["hardware"] = {{"entries", entries_of(flags, split.made.rules_given)},
                          {"hyper_entries", split.hyper_entries},
                          {"hyper_share", split.hyper_share},
                          {"idle_seconds", idle_seconds_of(flags)},
                          {"slow_path_matchers", flags.slow_path},
                          {"slow_path_share", split.slow_share},
                          {"slow_path_table", split.slow_table},
                          {"cost_mean", split.cost},
                          {"cost_mean_new_flows", split.cost_for_new},
                          {"cost_mean_without_hyper", split.cost_without_hyper}};
  return files::json_text(document, 1) + "\n";
}

}  // namespace greynic::cli
