#include "src/factored/run.h"

#include <algorithm>
#include <map>
#include <set>

namespace greynic::optimizer::factored {
namespace {

constexpr std::size_t kLeastRules = 64;  ///< of a run

using Fields = std::vector<MatchField>;  // canonical order

Fields fields_of(const Match& match) {
  Fields fields;
  for (const FieldMatch& part : match.fields()) fields.push_back(part.field);
  return fields;
}

/// The longest run around the fields that most rules look at.
Run longest_run(const std::vector<const FlowRule*>& table) {
  std::map<Fields, std::size_t> kinds;
  for (const FlowRule* rule : table) ++kinds[fields_of(rule->match)];
  const auto most = std::ranges::max_element(
      kinds, {}, [](const auto& kind) { return std::pair(kind.second, kind.first.size()); });
  Run best;
  for (std::size_t begin = 0; begin < table.size();) {
    std::size_t end = begin;
    while (end < table.size() && std::ranges::includes(most->first, fields_of(table[end]->match))) {
      ++end;
    }
    if (end - begin > best.end - best.begin) best = {begin, end};
    begin = std::max(end, begin + 1);
  }
  // Rules at its ends that do something else stay outside: where all do the same, their order is nothing.
  std::map<std::vector<Action>, std::size_t> effects;
  for (std::size_t i = best.begin; i < best.end; ++i) ++effects[table[i]->actions];
  const auto common =
      std::ranges::max_element(effects, {}, [](const auto& effect) { return effect.second; });
  while (best.begin < best.end && table[best.begin]->actions != common->first) ++best.begin;
  while (best.begin < best.end && table[best.end - 1]->actions != common->first) --best.end;
  return best;
}

/// Entries, if each class of what rules say of the other fields got a table for what they say of this one.
std::size_t entries_by(const std::vector<const FlowRule*>& table, const Run& run,
                       MatchField second) {
  std::map<Match, std::set<std::pair<U128, U128>>> classes;
  for (std::size_t i = run.begin; i < run.end; ++i) {
    const FieldMatch part = part_of(table[i]->match, second);
    classes[without(table[i]->match, second)].emplace(part.value, part.bits);
  }
  std::set<std::set<std::pair<U128, U128>>> lists;
  std::size_t entries = classes.size();
  for (auto& entry : classes) {
    const std::size_t size = entry.second.size();
    if (lists.insert(std::move(entry.second)).second) entries += size;
  }
  return entries;
}

/// Chooses both fields; false where nothing is won.
bool choose_fields(const std::vector<const FlowRule*>& table, Run& run) {
  std::map<MatchField, std::set<std::pair<U128, U128>>> parts;
  for (std::size_t i = run.begin; i < run.end; ++i) {
    for (const FieldMatch& part : table[i]->match.fields()) {
      parts[part.field].emplace(part.bits, part.value);
    }
  }
  std::size_t least = (run.end - run.begin) / 2 + 1;
  for (const auto& [field, held] : parts) {
    if (held.size() < 2) continue;
    const std::size_t entries = entries_by(table, run, field);
    if (entries >= least) continue;
    least = entries;
    run.second = field;
  }
  if (least > (run.end - run.begin) / 2) return false;
  std::size_t most = 0;
  for (const auto& [field, held] : parts) {
    if (field == run.second) continue;
    std::set<U128> masks;
    for (const auto& part : held) masks.insert(part.first);
    // Fields of many masks are what prefixes serve; all else is compared exactly.
    const std::size_t worth = (masks.size() > 1 ? 1'000'000 * masks.size() : 0) + held.size();
    if (worth <= most) continue;
    most = worth;
    run.first = field;
  }
  return most > 0;
}

}  // namespace

std::optional<Run> product_in(const std::vector<const FlowRule*>& table) {
  if (table.size() < kLeastRules) return std::nullopt;
  Run run = longest_run(table);
  if (run.end - run.begin < kLeastRules || !choose_fields(table, run)) return std::nullopt;
  return run;
}

FieldMatch part_of(const Match& match, MatchField field) {
  for (const FieldMatch& part : match.fields()) {
    if (part.field == field) return part;
  }
  return {field, 0, 0};
}

Match without(Match match, MatchField field) {
  match.set(field, 0, 0);
  return match;
}

}  // namespace greynic::optimizer::factored
