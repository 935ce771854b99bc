#include "src/joined/pipeline_proof.h"

#include <algorithm>
#include <bit>
#include <set>

namespace greynic::verify {
namespace {

constexpr std::uint32_t kMissed = 0xffffff00;  // the value of no match; effects are smaller
constexpr std::uint32_t kFirstJump =
    1U << 31;  // values from here on are places of tables of the layout
constexpr std::size_t kMostBytes = std::size_t{80} << 20;  // of lists of actions, each kept thrice

std::uint32_t effect_of(std::uint32_t value) { return value == kMissed ? kMiss : value; }

/// The tables, those first that jumps lead away from; jumps form no loop.
std::vector<const LayoutTable*> in_order_of_jumps(const Sides& sides) {
  std::map<std::uint32_t, const LayoutTable*> by_id;
  for (const LayoutTable* table : sides.tables) by_id[table->id] = table;
  std::vector<const LayoutTable*> last_first;
  std::set<std::uint32_t> seen;
  const auto visit = [&](const auto& self, std::uint32_t id) -> void {
    if (!seen.insert(id).second || !by_id.contains(id)) return;
    for (const Matcher& matcher : by_id.at(id)->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const std::uint32_t next = *continuation(rule, sides.added, sides.registers);
        if (next != kNoJump) self(self, next);
      }
    }
    last_first.push_back(by_id.at(id));
  };
  visit(visit, sides.table);
  return {last_first.rbegin(), last_first.rend()};
}

}  // namespace

PipelineProof::PipelineProof(const TablesOfSet& rules, const Layout& layout, const Onward& onward,
                             Limits limits)
    : rules_(rules), onward_(onward), limits_(limits) {
  if (limits.nodes > 0 && !has_ranges(layout) && onward.leads_anywhere()) {
    questions_.emplace(rules, layout);
  }
}

void PipelineProof::start_anew() {
  diagrams_.emplace(limits_.nodes, limits_.steps - steps_);
  first_match_.emplace(*diagrams_);
  effects_ = {};
  bytes_left_ = kMostBytes;
  rules_of_.clear();
  behind_.clear();
  after_.clear();
  open_.clear();
  found_.reset();
}

std::optional<PipelineProof::Answer> PipelineProof::compare(const Sides& sides) {
  if (!questions_ || steps_ >= limits_.steps) return std::nullopt;
  start_anew();
  const auto ends = ends_of_layout(sides);
  for (const auto& [effect, packets] : ends) {
    if (ran_out() || found_) break;
    for (const auto& [value, part] :
         diagrams_->parts(diagrams_->within(packets, rules_of(sides.table)))) {
      add(sides, {effect_of(value), false}, {effect, false}, part);
    }
  }
  while (!open_.empty() && !found_ && !ran_out()) {
    const auto [state, packets] = *open_.begin();
    open_.erase(open_.begin());
    go_on(sides, state, packets);
  }
  steps_ += diagrams_->steps();
  if (ran_out()) return std::nullopt;
  return found_ ? *found_ : Answer{.alike = true};
}

std::uint32_t PipelineProof::number(const Actions& actions) {
  bytes_left_ -= std::min(bytes_left_, bytes_of(actions) + sizeof(Actions));
  return bytes_left_ == 0 ? 0 : effects_.number(actions);
}

FunctionId PipelineProof::rules_of(std::uint32_t table) {
  if (const auto known = rules_of_.find(table); known != rules_of_.end()) return known->second;
  for (const FlowRule* rule : rules_.at(table)) {
    first_match_->add(questions_->asked(rule->match), number(plain(rule->actions)));
  }
  return rules_of_[table] = first_match_->take(kMissed);
}

FunctionId PipelineProof::layout_of(const LayoutTable& table, const Sides& sides,
                                    const std::map<std::uint32_t, std::uint32_t>& place) {
  for (const Matcher& matcher : table.matchers) {
    for (const FlowRule& rule : matcher.rules) {
      const std::uint32_t next = *continuation(rule, sides.added, sides.registers);
      if (next == kNoJump) {
        first_match_->add(questions_->asked(rule.match), number(plain(rule.actions)));
        continue;
      }
      first_match_->add(questions_->asked(rule.match), kFirstJump + place.at(next));
    }
  }
  return first_match_->take(kMissed);
}

/// What the layout does once it has left the tables that only it has, and to which packets.
std::map<std::uint32_t, FunctionId> PipelineProof::ends_of_layout(const Sides& sides) {
  std::map<std::uint32_t, FunctionId> ends;
  std::map<std::uint32_t, std::uint32_t> place;  // among the tables, by id
  for (const LayoutTable* table : sides.tables) {
    place.emplace(table->id, static_cast<std::uint32_t>(place.size()));
  }
  std::map<std::uint32_t, FunctionId> arrived = {{sides.table, BitDiagrams::kAll}};
  for (const LayoutTable* table : in_order_of_jumps(sides)) {
    if (ran_out()) break;
    const FunctionId here = diagrams_->within(arrived[table->id], layout_of(*table, sides, place));
    for (const auto& [value, packets] : diagrams_->parts(here)) {
      FunctionId& all = value < kFirstJump || value == kMissed
                            ? ends[effect_of(value)]
                            : arrived[sides.tables[value - kFirstJump]->id];
      all = diagrams_->either(all, packets);
    }
  }
  if (sides.tables.empty()) ends[kMiss] = BitDiagrams::kAll;
  return ends;
}

/// The rank of the table in which a side can be followed; none where it cannot.
std::optional<std::size_t> PipelineProof::rank_behind(const Side& side) const {
  if (side.ended || side.effect == kMiss) return std::nullopt;
  const auto next = onward_.next(effects_.actions(side.effect));
  return next ? onward_.rank(*next) : std::nullopt;
}

void PipelineProof::add(const Sides& sides, Side rules, Side layout, FunctionId packets) {
  if (packets == BitDiagrams::kNone || found_ || ran_out()) return;
  if (rules.effect == layout.effect) return;
  const bool missed = rules.effect == kMiss || layout.effect == kMiss;
  const auto rules_rank = rank_behind(rules);
  auto layout_rank = rank_behind(layout);
  // Only towards tables that were compared: what the layout does there is what the rules do.
  const auto from = onward_.rank(sides.table);
  if (layout_rank && (!from || *layout_rank >= *from)) layout_rank.reset();
  rules.ended = !rules_rank;
  layout.ended = !layout_rank;
  if (missed || (rules.ended && layout.ended)) {
    differ(rules, layout, !layout.ended, packets);
    return;
  }
  const State state{std::max(rules_rank.value_or(0), layout_rank.value_or(0)), rules, layout};
  FunctionId& all = open_[state];
  all = diagrams_->either(all, packets);
}

/// The side that is further from the end goes on by one table; the rules, when both are as far.
void PipelineProof::go_on(const Sides& sides, const State& state, FunctionId packets) {
  const bool by_rules = rank_behind(state.rules) == std::optional(state.rank);
  const std::uint32_t effect = by_rules ? state.rules.effect : state.layout.effect;
  for (const auto& [value, part] : diagrams_->parts(diagrams_->within(packets, behind(effect)))) {
    if (ran_out() || found_) return;
    const Side next = after(effect, value);
    add(sides, by_rules ? next : state.rules, by_rules ? state.layout : next, part);
  }
}

/// What the rules of the next table do to packets as they entered, once these actions are done.
FunctionId PipelineProof::behind(std::uint32_t effect) {
  const Actions& actions = effects_.actions(effect);
  const std::uint32_t table = *onward_.next(actions);
  const Questions::Known bits = questions_->written(actions);
  const FunctionId function = rules_of(table);
  if (bits.empty()) return function;
  const auto [place, fresh] = behind_.try_emplace({table, bits}, BitDiagrams::kNone);
  if (fresh) {
    KnownBits known(questions_->count(), kOpenBit);
    for (const auto& [bit, one] : bits) known[bit] = one ? 1 : 0;
    place->second = diagrams_->known(function, known);
  }
  return place->second;
}

/// What misses the next table stays as it was.
PipelineProof::Side PipelineProof::after(std::uint32_t effect, std::uint32_t done) {
  if (done == kMissed) return {effect, true};
  const auto [place, fresh] = after_.try_emplace({effect, done}, Side{effect, false});
  if (fresh)
    place->second.effect = number(followed_by(effects_.actions(effect), effects_.actions(done)));
  return place->second;
}

void PipelineProof::differ(const Side& rules, const Side& layout, bool follow, FunctionId packets) {
  const Packet packet = questions_->packet(diagrams_->member(packets));
  const auto in_the_end = [&](std::uint32_t effect, bool on) {
    if (effect == kMiss) return effects_.name(kMiss);
    EffectNames names;
    const Actions& actions = effects_.actions(effect);
    return names.name(names.number(on ? onward_.to_the_end(packet, actions) : actions));
  };
  const bool missed = rules.effect == kMiss || layout.effect == kMiss;
  found_ = {false, packet, in_the_end(rules.effect, !missed),
            in_the_end(layout.effect, !missed && follow)};
}

}  // namespace greynic::verify
