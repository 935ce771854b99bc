#include "tags.h"

#include <algorithm>
#include <map>
#include <vector>

#include "register_use.h"

namespace greynic::verify {
namespace {

/// What is known of the tags: by field the bits, and their values.
struct Known {
  U128 value = 0;
  U128 bits = 0;
  auto operator<=>(const Known&) const = default;
};
using State = std::map<MatchField, Known>;

class Untagger {
 public:
  Untagger(const RuleSet& rules, const Layout& layout, std::set<std::uint64_t>& added)
      : tags_(rules, layout), added_(added) {
    for (const LayoutTable& table : layout.tables) {
      by_id_[table.id] = &table;
      next_id_ = std::max<std::uint64_t>(next_id_, table.id + std::uint64_t{1});
    }
    for (const FlowRule& rule : rules.rules) {
      next_id_ = std::max<std::uint64_t>(next_id_, rule.table + std::uint64_t{1});
      for (const Action& action : rule.actions) {
        if (action.kind == ActionKind::kJump) next_id_ = std::max(next_id_, action.number + 1);
      }
    }
    for (const LayoutTable& table : layout.tables) {
      if (!added.contains(table.id)) number_of(table.id, {});
    }
    find_asked(layout);
  }

  Result<std::optional<Layout>> run() {
    Layout plain;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (next_id_ > kLastId) return fail(ErrorCode::kTooBig, "the tags make too many tables");
      const auto [id, state] = order_[i];
      auto table = written(id, state);
      if (!table) return pass_on(table);
      plain.tables.push_back(std::move(*table));
    }
    return std::optional(std::move(plain));
  }

 private:
  static constexpr std::size_t kMostTables = 1'000'000;
  static constexpr std::uint64_t kLastId = 0xfffffffe;

  /// The table with what is known there.
  std::uint32_t number_of(std::uint32_t table, const State& state) {
    const auto [place, fresh] = numbers_.try_emplace({table, state}, table);
    if (!fresh) return place->second;
    if (!state.empty()) {
      place->second = static_cast<std::uint32_t>(next_id_++);
      added_.insert(place->second);
    }
    order_.emplace_back(table, state);
    return place->second;
  }

  /// The tags that a table or any behind it matches: all others make no difference there.
  void find_asked(const Layout& layout) {
    std::map<std::uint64_t, std::set<std::uint64_t>> leads_here;
    for (const LayoutTable& table : layout.tables) {
      for (const Matcher& matcher : table.matchers) {
        for (const FieldMask& part : matcher.mask.fields()) asked_[table.id].insert(part.field);
        for (const MatchField field : matcher.mask.ranges()) asked_[table.id].insert(field);
        for (const FlowRule& rule : matcher.rules) {
          for (const Action& action : rule.actions) {
            if (action.kind != ActionKind::kJump || !added_.contains(action.number)) continue;
            leads_here[action.number].insert(table.id);
          }
        }
      }
    }
    std::vector<std::uint64_t> grown;
    for (const LayoutTable& table : layout.tables) grown.push_back(table.id);
    while (!grown.empty()) {
      const std::uint64_t to = grown.back();
      grown.pop_back();
      for (const std::uint64_t from : leads_here[to]) {
        const std::size_t before = asked_[from].size();
        asked_[from].insert(asked_[to].begin(), asked_[to].end());
        if (asked_[from].size() > before) grown.push_back(from);
      }
    }
  }

  Result<LayoutTable> written(std::uint32_t id, const State& state) {
    if (order_.size() > kMostTables) {
      return fail(ErrorCode::kTooBig, "the tags make more than a million tables");
    }
    LayoutTable table{numbers_.at({id, state}), {}};
    for (const Matcher& matcher : by_id_.at(id)->matchers) {
      Matcher kept{{}, matcher.priority, {}};
      for (FlowRule rule : matcher.rules) {
        const auto asks = narrowed(rule.match, state);
        if (!asks) return pass_on(asks);
        if (!*asks) continue;
        go_on(rule, state);
        kept.mask = rule.match.mask();
        kept.rules.push_back(std::move(rule));
      }
      if (!kept.rules.empty()) table.matchers.push_back(std::move(kept));
    }
    return table;
  }

  /// Takes from the match what is known; false when it asks for another tag.
  static Result<bool> narrowed(Match& match, const State& state) {
    for (const auto& [field, known] : state) {
      for (const FieldMatch& part : match.fields()) {
        if (part.field != field) continue;
        if (((part.value ^ known.value) & part.bits & known.bits) != 0) return false;
        match.set(field, part.value, part.bits & ~known.bits);
        break;
      }
      for (const FieldRange& range : match.ranges()) {
        if (range.field != field) continue;
        if (known.bits != full_mask(field)) {
          return fail(ErrorCode::kUnsupported,
                      "a tag of which some bits are known is compared with a range");
        }
        if (known.value < range.low || range.high < known.value) return false;
        match.set(field, 0, 0);
        break;
      }
    }
    return true;
  }

  /// A rule that leads to a table of the layout's own sets tags on its way, and does nothing else.
  void go_on(FlowRule& rule, State state) {
    const auto jump =
        std::find_if(rule.actions.begin(), rule.actions.end(), [&](const Action& action) {
          return action.kind == ActionKind::kJump && added_.contains(action.number);
        });
    if (jump == rule.actions.end()) return;
    const auto is_tag = [&](const Action& action) {
      return action.kind == ActionKind::kSetField && tags_.is_tag(action.field);
    };
    for (auto action = rule.actions.begin(); action != jump; ++action) {
      if (!is_tag(*action)) continue;
      Known& known = state[action->field];
      known.value = (known.value & ~action->bits) | (action->value & action->bits);
      known.bits |= action->bits;
    }
    const std::set<MatchField>& asked = asked_[jump->number];
    std::erase_if(state, [&](const auto& entry) {
      return entry.second.bits == 0 || !asked.contains(entry.first);
    });
    const auto next = number_of(static_cast<std::uint32_t>(jump->number), state);
    *jump = Action::jump(next);
    rule.actions.erase(std::remove_if(rule.actions.begin(), jump, is_tag), jump);
  }

  TagFields tags_;
  std::set<std::uint64_t>& added_;
  std::map<std::uint64_t, const LayoutTable*> by_id_;
  std::map<std::uint64_t, std::set<MatchField>> asked_;  ///< by table
  std::map<std::pair<std::uint32_t, State>, std::uint32_t> numbers_;
  std::vector<std::pair<std::uint32_t, State>> order_;
  std::uint64_t next_id_ = 0;
};

bool sets_fields(const Layout& layout) {
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const auto kind = [&](ActionKind wanted) {
          return std::any_of(rule.actions.begin(), rule.actions.end(),
                             [&](const Action& action) { return action.kind == wanted; });
        };
        if (kind(ActionKind::kSetField) && kind(ActionKind::kJump)) return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<std::optional<Layout>> without_tags(const RuleSet& rules, const Layout& layout,
                                           std::set<std::uint64_t>& added) {
  if (!sets_fields(layout)) return std::optional<Layout>{};
  return Untagger(rules, layout, added).run();
}

}  // namespace greynic::verify
