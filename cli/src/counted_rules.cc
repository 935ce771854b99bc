#include "counted_rules.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "greynic/files/core_json.h"

namespace greynic::cli {
namespace {

std::string text_of(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : ",") + to_string(action);
  return text;
}

}  // namespace

void print_rules(const std::vector<target::CountedRule>& rules, bool as_json) {
  if (as_json) {
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
    fmt::print("{}\n", rows.dump(1));
    return;
  }
  fmt::print("{:>10} {:>8} {:>14} {:>16}  {}\n", "table", "priority", "packets", "bytes", "rule");
  for (const auto& [rule, packets, bytes] : rules) {
    const std::string match = to_string(rule.match);
    fmt::print("{:>10} {:>8} {:>14} {:>16}  {} -> {}\n", rule.table, rule.priority, packets, bytes,
               match.empty() ? "any" : match, text_of(rule.actions));
  }
}

}  // namespace greynic::cli
