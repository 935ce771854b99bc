#include "greynic/loop/rule_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "greynic/files/shipped.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"

namespace greynic::loop {
namespace {

/// A filter with port ranges becomes one rule for each pair of prefixes: 900 for two wide ones.
void announce(const RuleSet& set, const std::string& path, const Talk& talk) {
  std::size_t filters = 0;
  const FlowRule* last = nullptr;
  for (const FlowRule& rule : set.rules) {
    if (last == nullptr || rule.from != last->from || rule.priority != last->priority) ++filters;
    last = &rule;
  }
  if (filters == set.rules.size()) return;
  talk.line(fmt::format("{}: {} filters, {} rules with their port ranges as prefixes", path,
                        filters, set.rules.size()));
}

/// A layout of rules whose jumps lead back would be refused by all that reads it.
Result<void> check_jumps(const RuleSet& set, const std::string& path) {
  std::map<std::uint32_t, std::vector<FlowRule>> jumping;
  for (const FlowRule& rule : set.rules) {
    std::vector<FlowRule>& of_table = jumping[rule.table];
    if (std::ranges::count(rule.actions, ActionKind::kJump, &Action::kind) > 0) {
      of_table.push_back(rule);
    }
  }
  Layout jumps;
  for (auto& [table, members] : jumping) jumps.tables.push_back({table, {{{}, 0, members}}});
  const auto table = endless_jumps(jumps);
  if (!table) return {};
  return fail(ErrorCode::kBadInput,
              fmt::format("{}: table {} lies on a loop of jumps, or behind one, that do not change "
                          "the packet: it could go round for ever; let one of the jumps lead "
                          "elsewhere",
                          path, jumps.tables[*table].id));
}

Result<RuleSet> read_or_make(const std::string& path, std::optional<rules::Format> format) {
  const auto made = rules::made_filters_named(path);
  if (!made) return pass_on(made);
  if (!*made) return rules::read_rules(files::shipped_file("rules", path), format);
  const auto text = rules::made_filters(**made);
  if (!text) return text.error().while_doing(path);
  return rules::parse_rules(*text, path, rules::Format::kClassbench);
}

}  // namespace

Result<RuleSet> load_rules(const RuleInput& input, const Talk& talk) {
  std::optional<rules::Format> format;
  if (!input.format.empty()) {
    format = rules::format_named(input.format);
    if (!format) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("--format {}: there are classbench, openflow, fields, megaflow, tc "
                              "and layout",
                              input.format));
    }
  }
  auto read = read_or_make(input.path, format);
  if (!read) return read;
  if (auto good = check_jumps(*read, input.path); !good) return pass_on(good);
  announce(*read, input.path, talk);
  if (!rules::has_conjunctions(*read)) return read;
  const std::size_t before = read->rules.size();
  auto resolved = rules::resolve_conjunctions(std::move(*read));
  if (resolved) {
    talk.line(fmt::format("{}: {} rules, {} with their conjunctions as plain rules", input.path,
                          before, resolved->rules.size()));
  }
  return resolved;
}

}  // namespace greynic::loop
