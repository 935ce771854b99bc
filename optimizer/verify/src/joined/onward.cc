#include "src/joined/onward.h"

#include <algorithm>
#include <set>

namespace greynic::verify {
namespace {

bool jumps(const Action& action) { return action.kind == ActionKind::kJump; }

/// Of these it is known which bits of a packet they change: all that they name, or none.
bool understood(const Action& action) {
  return action.kind == ActionKind::kSetField || action.kind == ActionKind::kForward ||
         action.kind == ActionKind::kCount;
}

bool all_understood(const Actions& actions) {
  return std::all_of(actions.begin(), actions.end() - 1, understood);
}

struct Written {
  U128 value = 0;
  U128 bits = 0;
};

/// The bits of a field once all actions were done.
Written written_to(MatchField field, const Actions& actions) {
  Written known;
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kSetField || action.field != field) continue;
    known.value = (known.value & ~action.bits) | (action.value & action.bits);
    known.bits |= action.bits;
  }
  return known;
}

/// The packets of a way that are in `asked` after its actions.
std::optional<Match> narrowed(const Way& way, const Match& asked) {
  Match result = way.match;
  for (const FieldMatch& part : asked.fields()) {
    const Written known = written_to(part.field, way.actions);
    if (((part.value ^ known.value) & part.bits & known.bits) != 0) return std::nullopt;
    U128 value = part.value & ~known.bits;
    U128 bits = part.bits & ~known.bits;
    for (const FieldMatch& held : way.match.fields()) {
      if (held.field != part.field) continue;
      if (((held.value ^ value) & held.bits & bits) != 0) return std::nullopt;
      value |= held.value;
      bits |= held.bits;
    }
    if (bits != 0) result.set(part.field, value, bits);
  }
  return result;
}

}  // namespace

const Actions& plain(const Actions& actions) {
  static const Actions kNothing;
  const bool drops = actions.size() == 1 && actions.front().kind == ActionKind::kDrop;
  return drops ? kNothing : actions;
}

Actions followed_by(const Actions& actions, const Actions& then) {
  Actions all(actions.begin(), actions.end() - 1);
  const Actions& rest = plain(then);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::size_t bytes_of(const Actions& actions) {
  std::size_t bytes = actions.size() * sizeof(Action);
  for (const Action& action : actions) bytes += action.text.size();
  return bytes;
}

Onward::Onward(const TablesOfSet& tables) : tables_(tables) {
  for (const auto& [id, rules] : tables_) {
    for (const FlowRule* rule : rules) {
      leads_anywhere_ = leads_anywhere_ ||
                        (!rule->actions.empty() && jumps(rule->actions.back()) &&
                         tables_.contains(static_cast<std::uint32_t>(rule->actions.back().number)));
    }
  }
  if (!leads_anywhere_) return;
  find_ranks();
}

/// Tables from which no jump leads on come first, then those from which all lead to such, and so on.
void Onward::find_ranks() {
  std::map<std::uint32_t, std::set<std::uint32_t>> leads_here;
  std::map<std::uint32_t, std::set<std::uint32_t>> open;
  for (const auto& [id, rules] : tables_) {
    for (const FlowRule* rule : rules) {
      for (const Action& action : rule->actions) {
        const auto to = static_cast<std::uint32_t>(action.number);
        if (!jumps(action) || !tables_.contains(to)) continue;
        open[id].insert(to);
        leads_here[to].insert(id);
      }
    }
  }
  std::vector<std::uint32_t> order;
  for (const auto& entry : tables_) {
    if (!open.contains(entry.first)) order.push_back(entry.first);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    ranks_[order[i]] = i;
    for (const std::uint32_t from : leads_here[order[i]]) {
      open[from].erase(order[i]);
      if (open[from].empty()) order.push_back(from);
    }
  }
}

std::optional<std::size_t> Onward::rank(std::uint32_t table) const {
  const auto found = ranks_.find(table);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Onward::next(const Actions& actions) const {
  if (!leads_anywhere_ || actions.empty() || std::ranges::count_if(actions, jumps) != 1 ||
      !jumps(actions.back())) {
    return std::nullopt;
  }
  const auto to = static_cast<std::uint32_t>(actions.back().number);
  if (!ranks_.contains(to)) return std::nullopt;
  const bool takes_all = tables_.at(to).front()->match.fields().empty();
  return takes_all || all_understood(actions) ? std::optional(to) : std::nullopt;
}

std::optional<std::vector<Way>> Onward::one_table_on(const Way& way, std::size_t most_bytes) const {
  std::vector<Way> ways;
  std::size_t bytes = bytes_of(way.actions);
  for (const FlowRule* rule : tables_.at(*next(way.actions))) {
    auto match = narrowed(way, rule->match);
    if (!match) continue;
    const bool all = *match == way.match;
    ways.push_back({std::move(*match), followed_by(way.actions, rule->actions)});
    bytes += bytes_of(ways.back().actions);
    if (bytes > most_bytes) return std::nullopt;
    if (all) return ways;
  }
  ways.push_back(way);
  return ways;
}

Actions Onward::to_the_end(const Packet& entered, Actions actions) const {
  while (const auto table = next(actions)) {
    Packet packet = entered;
    for (const Action& action : actions) {
      if (action.kind != ActionKind::kSetField) continue;
      packet.set(action.field,
                 (packet.value(action.field) & ~action.bits) | (action.value & action.bits));
    }
    const auto& rules = tables_.at(*table);
    const auto hit = std::find_if(rules.begin(), rules.end(), [&](const FlowRule* rule) {
      return rule->match.matches(packet);
    });
    if (hit == rules.end()) break;
    actions = followed_by(actions, (*hit)->actions);
  }
  return actions;
}

}  // namespace greynic::verify
