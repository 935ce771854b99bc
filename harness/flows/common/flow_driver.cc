#include "greynic/flows/flow_driver.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "common/journal.h"

namespace greynic::flows {

FlowDriver::FlowDriver(std::unique_ptr<Journal> journal) : journal_(std::move(journal)) {}

FlowDriver::~FlowDriver() = default;

Result<void> FlowDriver::apply(const RuleSet& rules) {
  if (auto accepted = check(rules); !accepted) return accepted;
  auto there = snapshot();
  if (!there) return there.error().while_doing("taking a snapshot of the rules");
  auto entry = journal_->read();
  if (!entry) return pass_on(entry);
  const std::string original = *entry ? (*entry)->original : *there;
  if (auto kept = journal_->write({false, original, *there}); !kept) return kept;
  if (auto installed = install(rules); !installed) {
    if (auto back = restore(*there); !back) {
      // The journal stays: the next opening tries again.
      return fail(ErrorCode::kRefused,
                  fmt::format("{}; and the snapshot could not be put back: {}",
                              installed.error().message, back.error().message));
    }
    auto cleared = *entry ? journal_->write({true, original, (*entry)->before}) : journal_->clear();
    if (!cleared) return cleared;
    return installed;
  }
  return journal_->write({true, original, *there});
}

Result<void> FlowDriver::roll_back() {
  auto entry = journal_->read();
  if (!entry) return pass_on(entry);
  if (!*entry) return {};
  if (auto back = restore((*entry)->original); !back) {
    return back.error().while_doing("putting the first rules back");
  }
  return journal_->clear();
}

Result<void> FlowDriver::recover() {
  auto entry = journal_->read();
  if (!entry) return pass_on(entry);
  if (!*entry || (*entry)->finished) return {};
  if (auto back = restore((*entry)->before); !back) {
    return back.error().while_doing("putting back the rules that an interrupted change left");
  }
  if ((*entry)->before == (*entry)->original) return journal_->clear();
  return journal_->write({true, (*entry)->original, (*entry)->before});
}

RuleSet rules_of(const Layout& layout) {
  RuleSet set;
  for (const LayoutTable& table : layout.tables) {
    for (std::size_t order = 0; order < table.matchers.size(); ++order) {
      std::set<Match> seen;
      for (const FlowRule& rule : table.matchers[order].rules) {
        if (!seen.insert(rule.match).second) continue;
        FlowRule placed = rule;
        placed.table = table.id;
        placed.priority = static_cast<RulePriority>(order);
        set.rules.push_back(std::move(placed));
      }
    }
  }
  return set;
}

namespace {

using Place = std::pair<std::uint32_t, RulePriority>;  // table, priority

tl::unexpected<Error> ambiguous(const RuleSet& rules, std::size_t one, std::size_t other) {
  const FlowRule& rule = rules.rules[one];
  return fail(
      ErrorCode::kBadInput,
      fmt::format("rules {} ({}) and {} ({}) overlap with equal priority {}: which one wins "
                  "is up to the device; give them different priorities",
                  one, to_string(rule.match), other, to_string(rules.rules[other].match),
                  rule.priority));
}

}  // namespace

std::string place_of(const RuleSet& rules, std::size_t i) {
  const FlowRule& rule = rules.rules[i];
  std::string place = fmt::format("rule {} ({})", i, to_string(rule.match));
  if (!rule.from.empty()) {
    place += fmt::format(", of input line{} {}", rule.from.size() == 1 ? "" : "s",
                         fmt::join(rule.from, ", "));
  }
  return place;
}

Result<void> check_unambiguous(const RuleSet& rules) {
  std::map<Place, std::map<Mask, std::vector<std::size_t>>> groups;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const FlowRule& rule = rules.rules[i];
    groups[{rule.table, rule.priority}][rule.match.mask()].push_back(i);
  }
  for (const auto& [place, by_mask] : groups) {
    for (auto members = by_mask.begin(); members != by_mask.end(); ++members) {
      // Rules of one mask overlap only when they are equal.
      std::map<Match, std::size_t> seen;
      for (const std::size_t i : members->second) {
        const auto [twin, fresh] = seen.emplace(rules.rules[i].match, i);
        if (!fresh) return ambiguous(rules, twin->second, i);
      }
      for (auto others = std::next(members); others != by_mask.end(); ++others) {
        for (const std::size_t i : members->second) {
          for (const std::size_t j : others->second) {
            if (rules.rules[i].match.overlaps(rules.rules[j].match)) return ambiguous(rules, i, j);
          }
        }
      }
    }
  }
  return {};
}

}  // namespace greynic::flows
