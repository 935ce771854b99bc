#include "greynic/loop/counted_rules.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::loop {
namespace {

std::string text_of(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : ",") + to_string(action);
  return text;
}

}  // namespace

std::string to_text(const std::vector<target::CountedRule>& rules) {
  std::string text = fmt::format("{:>10} {:>8} {:>14} {:>16}  {}\n", "table", "priority", "packets",
                                 "bytes", "rule");
  for (const auto& [rule, packets, bytes] : rules) {
    const std::string match = to_string(rule.match);
    text += fmt::format("{:>10} {:>8} {:>14} {:>16}  {} -> {}\n", rule.table, rule.priority,
                        packets, bytes, match.empty() ? "any" : match, text_of(rule.actions));
  }
  return text;
}

std::string to_json_text(const std::vector<target::CountedRule>& rules) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [rule, packets, bytes] : rules) {
    nlohmann::json actions = nlohmann::json::array();
    for (const Action& action : rule.actions) actions.push_back(files::to_json(action));
    rows.push_back({{"table", rule.table},
                    {"priority", rule.priority},
                    {"match", files::to_json(rule.match)},
                    {"actions", std::move(actions)},
                    {"packets", packets},
                    {"bytes", bytes}});
  }
  return files::json_text(rows, 1) + "\n";
}

Layout weighed_layout(const std::vector<target::CountedRule>& rules) {
  std::map<std::uint32_t, double> packets_of;
  for (const auto& row : rules) packets_of[row.rule.table] += static_cast<double>(row.packets);
  RuleSet set;
  for (const auto& row : rules) {
    FlowRule rule = row.rule;
    const double packets = packets_of[rule.table];
    if (packets > 0) rule.weight = static_cast<double>(row.packets) / packets;
    set.rules.push_back(std::move(rule));
  }
  return flat_layout(set);
}

}  // namespace greynic::loop
