#include "dpdk/rte_templates.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace greynic::flows {
namespace {

/// What two rules of one pattern template have in common, as bytes: items and their masks.
std::string pattern_shape(const RteRule& rule) {
  std::string shape;
  for (std::size_t i = 0; i < rule.pattern.size(); ++i) {
    const rte_flow_item& item = rule.pattern[i];
    shape += fmt::format("/{}:", static_cast<int>(item.type));
    if (item.mask != nullptr) {
      shape.append(static_cast<const char*>(item.mask), rule.item_bytes[i]);
    }
  }
  return shape;
}

/// What two rules of one actions template have in common: the kinds of actions, in their order.
std::string actions_shape(const RteRule& rule) {
  std::string shape;
  for (const rte_flow_action& action : rule.actions) {
    shape += fmt::format("/{}", static_cast<int>(action.type));
  }
  return shape;
}

tl::unexpected<Error> refused(const RteRule& rule, std::string_view what,
                              const rte_flow_error& error) {
  return fail(ErrorCode::kUnsupported, fmt::format("the port refuses the {} of rule {}: {}", what,
                                                   rule.name, words_of(error)));
}

}  // namespace

struct RteTemplates::Table {
  rte_flow_pattern_template* pattern = nullptr;
  std::vector<rte_flow_actions_template*> actions;
  std::vector<std::size_t> rules;
  std::vector<std::uint8_t> actions_of_rules;
};

Result<rte_flow_pattern_template*> RteTemplates::pattern_for(const RteRule& rule) {
  // Not relaxed: an item without a mask means that the header is there, as in every other rule.
  const rte_flow_pattern_template_attr attributes = {.relaxed_matching = 0,
                                                     .ingress = rule.attributes.ingress};
  rte_flow_error error{};
  rte_flow_pattern_template* const made =
      calls_.pattern_template_create(port_, &attributes, rule.pattern.data(), &error);
  if (made == nullptr) return refused(rule, "mask", error);
  patterns_.push_back(made);
  return made;
}

Result<rte_flow_actions_template*> RteTemplates::actions_for(const RteRule& rule) {
  const rte_flow_actions_template_attr attributes = {.ingress = rule.attributes.ingress};
  std::vector<rte_flow_action> all_open = rule.actions;
  for (rte_flow_action& action : all_open) action.conf = nullptr;
  rte_flow_error error{};
  rte_flow_actions_template* const made = calls_.actions_template_create(
      port_, &attributes, rule.actions.data(), all_open.data(), &error);
  if (made == nullptr) return refused(rule, "actions", error);
  actions_.push_back(made);
  return made;
}

Result<void> RteTemplates::create_table(std::span<const RteRule> rules, const Table& table) {
  const RteRule& first = rules[table.rules.front()];
  const rte_flow_template_table_attr attributes = {
      .flow_attr = first.attributes, .nb_flows = static_cast<std::uint32_t>(table.rules.size())};
  rte_flow_pattern_template* pattern = table.pattern;
  std::vector<rte_flow_actions_template*> actions = table.actions;
  rte_flow_error error{};
  rte_flow_template_table* const made =
      calls_.template_table_create(port_, &attributes, &pattern, 1, actions.data(),
                                   static_cast<std::uint8_t>(actions.size()), &error);
  if (made == nullptr) return refused(first, "table", error);
  tables_.push_back(made);
  for (std::size_t i = 0; i < table.rules.size(); ++i) {
    places_[table.rules[i]] = {made, table.actions_of_rules[i]};
  }
  return {};
}

Result<std::unique_ptr<RteTemplates>> RteTemplates::create(const RteCalls& calls,
                                                           std::uint16_t port,
                                                           std::span<const RteRule> rules) {
  std::unique_ptr<RteTemplates> made(new RteTemplates(calls, port));
  made->places_.resize(rules.size());
  std::map<std::string, rte_flow_pattern_template*> patterns;
  std::map<std::string, rte_flow_actions_template*> actions;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, Table> tables;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const RteRule& rule = rules[i];
    const std::string mask = pattern_shape(rule);
    rte_flow_pattern_template*& pattern = patterns[mask];
    if (pattern == nullptr) {
      const auto created = made->pattern_for(rule);
      if (!created) return pass_on(created);
      pattern = *created;
    }
    const std::string kinds = actions_shape(rule);
    rte_flow_actions_template*& kind = actions[kinds];
    if (kind == nullptr) {
      const auto created = made->actions_for(rule);
      if (!created) return pass_on(created);
      kind = *created;
    }
    Table& table = tables[{rule.attributes.group, rule.attributes.priority, mask}];
    table.pattern = pattern;
    const auto known = std::find(table.actions.begin(), table.actions.end(), kind);
    const auto index = known - table.actions.begin();
    if (known == table.actions.end()) {
      if (index == std::numeric_limits<std::uint8_t>::max()) {
        return fail(ErrorCode::kUnsupported,
                    fmt::format("rule {}: rules of one mask, group and priority may have {} "
                                "different lists of actions at most",
                                rule.name, index));
      }
      table.actions.push_back(kind);
    }
    table.rules.push_back(i);
    table.actions_of_rules.push_back(static_cast<std::uint8_t>(index));
  }
  for (const auto& [key, table] : tables) {
    if (auto created = made->create_table(rules, table); !created) return pass_on(created);
  }
  return made;
}

RteTemplates::~RteTemplates() {
  // In this order, because a template stays as long as a table refers to it. A port that keeps one
  // anyway frees it when it is closed.
  rte_flow_error error{};
  for (auto* table : tables_) (void)calls_.template_table_destroy(port_, table, &error);
  for (auto* pattern : patterns_) (void)calls_.pattern_template_destroy(port_, pattern, &error);
  for (auto* actions : actions_) (void)calls_.actions_template_destroy(port_, actions, &error);
}

}  // namespace greynic::flows
