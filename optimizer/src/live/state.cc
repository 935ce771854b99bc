#include "src/live/state.h"

#include <algorithm>

namespace greynic::optimizer::live {

Packet packet_of(const Match& match) {
  std::uint64_t random = match.hash();
  Packet packet;
  for (const MatchFieldInfo& row : match_fields()) {
    U128 noise = 0;
    for (int half = 0; half < 2; ++half) {  // SplitMix64
      random += 0x9e3779b97f4a7c15ULL;
      std::uint64_t mixed = (random ^ random >> 30) * 0xbf58476d1ce4e5b9ULL;
      mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
      noise = noise << 64 | (mixed ^ mixed >> 31);
    }
    packet.set(row.field, noise & full_mask(row.field));
  }
  for (const FieldMatch& part : match.fields()) {
    packet.set(part.field, part.value | (packet.value(part.field) & ~part.bits));
  }
  return packet;
}

void State::rules_meeting(std::uint32_t root, const Cube& cube, Ids& found) const {
  looked_at_ += rule_index_[root].meeting(cube, rule_cubes_, space_.words(), found);
  std::sort(found.begin(), found.end(),
            [this](std::uint32_t a, std::uint32_t b) { return rules_[a].order < rules_[b].order; });
}

void State::entries_meeting(std::uint32_t table, const Cube& cube, Ids& found) const {
  looked_at_ += tables_[table].index.meeting(cube, cubes_, space_.words(), found);
  std::sort(found.begin(), found.end(),
            [this](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); });
}

const KeptRule& State::last_owner(std::uint32_t entry) const {
  const Ids& owners = entries_[entry].rules;
  return rules_[*std::max_element(owners.begin(), owners.end(), [this](auto a, auto b) {
    return rules_[a].order < rules_[b].order;
  })];
}

bool State::can_hold(const FlowRule& rule) const {
  const auto is_root = [this](std::uint32_t id) {
    const auto place = place_of_.find(id);
    return place != place_of_.end() && tables_[place->second].root == place->second;
  };
  for (const Action& action : rule.actions) {
    const auto to = static_cast<std::uint32_t>(action.number);
    if (action.kind == ActionKind::kJump && place_of_.contains(to) && !is_root(to)) return false;
  }
  return columns_.covers(rule.match.mask()) && is_root(rule.table);
}

void State::add_rule(std::uint32_t id, KeptRule rule) {
  if (id >= rules_.size()) {
    rules_.resize(id + 1);
    rule_cubes_.resize(id + 1);
  }
  rule.effect = effects_.number(rule.rule.actions);
  rule.lost = false;
  rule.entries.clear();
  rule.way.clear();
  rules_[id] = std::move(rule);
  rule_cubes_[id] = space_.cube(rules_[id].rule.match);
  rules_[id].packet = space_.point(packet_of(rules_[id].rule.match));
  rule_index_[root_of(id)].insert(id, rule_cubes_, space_.words());
}

void State::remove_rule(std::uint32_t id, Changes& changes) {
  uncount(id);
  while (!rules_[id].entries.empty()) {
    const std::uint32_t entry = rules_[id].entries.back();
    if (entries_[entry].rules.size() > 1) changes.uncovered.push_back(cubes_[entry]);
    remove_entry(entry, changes);
  }
  rule_index_[root_of(id)].erase(id, rule_cubes_);
  rules_[id].present = false;
  rules_[id].lost = false;
}

void State::number_matchers(KeptTable& table, std::size_t from) {
  for (std::size_t i = from; i < table.matchers.size(); ++i) {
    matchers_[table.matchers[i]].position = static_cast<std::uint32_t>(i);
  }
}

std::uint32_t State::add_matcher(std::uint32_t table, std::uint32_t position, const Cube& mask,
                                 Changes& changes) {
  auto id = static_cast<std::uint32_t>(matchers_.size());
  if (free_matchers_.empty()) {
    matchers_.emplace_back();
  } else {
    id = free_matchers_.back();
    free_matchers_.pop_back();
  }
  matchers_[id] = {table, position, {}, {}, 0.0};
  for (std::size_t w = 0; w < space_.words(); ++w) matchers_[id].mask[w].mask = mask[w].mask;
  KeptTable& here = tables_[table];
  tried_ += weight_from(here, position);
  here.matchers.insert(here.matchers.begin() + position, id);
  number_matchers(here, position);
  ++changes.matchers_added;
  return id;
}

void State::add_entry(std::uint32_t matcher, const Cube& cube, std::uint32_t rule,
                      Changes& changes) {
  auto id = static_cast<std::uint32_t>(entries_.size());
  if (free_entries_.empty()) {
    entries_.emplace_back();
    cubes_.emplace_back();
  } else {
    id = free_entries_.back();
    free_entries_.pop_back();
  }
  KeptMatcher& under = matchers_[matcher];
  entries_[id] = {{rule}, kNothing, matcher, static_cast<std::uint32_t>(under.entries.size()), {}};
  cubes_[id] = cube;
  under.entries.push_back(id);
  tables_[under.table].index.insert(id, cubes_, space_.words());
  rules_[rule].entries.push_back(id);
  ++entry_count_;
  changes.added.push_back(id);
}

void State::remove_entry(std::uint32_t id, Changes& changes) {
  const Ids counted = std::move(entries_[id].counted);
  entries_[id].counted.clear();
  for (const std::uint32_t rule : counted) {
    uncount(rule);
    rules_[rule].lost = true;
    lost_.push_back(rule);
  }
  const Entry gone = entries_[id];
  for (const std::uint32_t owner : gone.rules) std::erase(rules_[owner].entries, id);
  KeptMatcher& matcher = matchers_[gone.matcher];
  KeptTable& table = tables_[matcher.table];
  table.index.erase(id, cubes_);
  matcher.entries[gone.slot] = matcher.entries.back();
  entries_[matcher.entries[gone.slot]].slot = gone.slot;
  matcher.entries.pop_back();
  if (matcher.entries.empty()) {
    const std::uint32_t position = matcher.position;
    tried_ -= weight_from(table, position);
    table.matchers.erase(table.matchers.begin() + position);
    number_matchers(table, position);
    free_matchers_.push_back(gone.matcher);
    ++changes.matchers_removed;
  }
  entries_[id] = {};
  free_entries_.push_back(id);
  --entry_count_;
  ++changes.removed;
}

bool State::may_change_places(std::uint32_t a, std::uint32_t b) const {
  constexpr std::size_t kMostEntries = 64;
  if (matchers_[a].entries.size() > matchers_[b].entries.size()) std::swap(a, b);
  if (matchers_[a].entries.size() > kMostEntries) return false;
  Ids met;
  for (const std::uint32_t here : matchers_[a].entries) {
    looked_at_ +=
        tables_[matchers_[a].table].index.meeting(cubes_[here], cubes_, space_.words(), met);
    for (const std::uint32_t there : met) {
      const Entry& one = entries_[here];
      const Entry& other = entries_[there];
      if (other.matcher != b) continue;
      if (one.jump != other.jump) return false;
      if (one.jump != kNothing) continue;
      if (rules_[one.rules[0]].effect != rules_[other.rules[0]].effect) return false;
    }
  }
  return true;
}

void State::move_by_weight(std::uint32_t rule) {
  constexpr int kMostPlaces = 8;
  for (const std::uint32_t hit : rules_[rule].way) {
    const std::uint32_t id = entries_[hit].matcher;
    const KeptTable& table = tables_[matchers_[id].table];
    for (int places = 0; places < kMostPlaces; ++places) {
      const std::uint32_t at = matchers_[id].position;
      if (at > 0 && exchange_if_lighter(table, at - 1)) continue;
      if (at + 1 >= table.matchers.size() || !exchange_if_lighter(table, at)) break;
    }
  }
}

bool State::exchange_if_lighter(const KeptTable& table, std::uint32_t position) {
  std::uint32_t& first = tables_[place_of_.at(table.id)].matchers[position];
  std::uint32_t& second = tables_[place_of_.at(table.id)].matchers[position + 1];
  if (!(matchers_[first].weight < matchers_[second].weight)) return false;
  if (!may_change_places(first, second)) return false;
  tried_ += matchers_[first].weight - matchers_[second].weight;
  std::swap(first, second);
  matchers_[first].position = position;
  matchers_[second].position = position + 1;
  return true;
}

double State::weight_from(const KeptTable& table, std::size_t position) const {
  double weight = table.weight;
  for (std::size_t i = 0; i < position; ++i) weight -= matchers_[table.matchers[i]].weight;
  return weight;
}

void State::count(std::uint32_t id) {
  KeptRule& rule = rules_[id];
  rule.way.clear();
  weight_ += rule.weight;
  Ids met;
  for (std::uint32_t at = root_of(id); at != kNothing;) {
    KeptTable& table = tables_[at];
    table.weight += rule.weight;
    entries_meeting(at, rule.packet, met);
    if (met.empty()) {
      tried_ += rule.weight * static_cast<double>(table.matchers.size());
      return;
    }
    Entry& hit = entries_[met.front()];
    KeptMatcher& matcher = matchers_[hit.matcher];
    matcher.weight += rule.weight;
    tried_ += rule.weight * (matcher.position + 1);
    rule.way.push_back(met.front());
    at = hit.jump;
    if (at == kNothing) hit.counted.push_back(id);
  }
}

void State::uncount(std::uint32_t id) {
  KeptRule& rule = rules_[id];
  if (rule.lost) return;
  weight_ -= rule.weight;
  std::uint32_t at = root_of(id);
  for (const std::uint32_t hit : rule.way) {
    Entry& entry = entries_[hit];
    KeptMatcher& matcher = matchers_[entry.matcher];
    tables_[at].weight -= rule.weight;
    matcher.weight -= rule.weight;
    tried_ -= rule.weight * (matcher.position + 1);
    at = entry.jump;
    if (at == kNothing) std::erase(entry.counted, id);
  }
  if (at != kNothing) {
    tables_[at].weight -= rule.weight;
    tried_ -= rule.weight * static_cast<double>(tables_[at].matchers.size());
  }
  rule.way.clear();
}

void State::count_lost() {
  for (const std::uint32_t rule : lost_) {
    if (!rules_[rule].lost) continue;
    rules_[rule].lost = false;
    count(rule);
  }
  lost_.clear();
}

void State::weigh(std::uint32_t rule, double weight) {
  uncount(rule);
  rules_[rule].weight = weight;
  count(rule);
}

double State::matchers_tried() const { return weight_ > 0.0 ? tried_ / weight_ : 0.0; }

Layout State::layout() const {
  Layout layout;
  for (const KeptTable& table : tables_) {
    if (table.root == kNothing) continue;  // no packet comes here
    LayoutTable& made = layout.tables.emplace_back();
    made.id = table.id;
    for (const std::uint32_t id : table.matchers) {
      const KeptMatcher& matcher = matchers_[id];
      Matcher& written = made.matchers.emplace_back();
      written.mask = space_.match(matcher.mask).mask();
      written.priority = matcher.position;
      for (const std::uint32_t place : matcher.entries) {
        const Entry& entry = entries_[place];
        FlowRule& rule = written.rules.emplace_back();
        rule.match = space_.match(space_.under(matcher.mask, cubes_[place]));
        rule.priority = matcher.position;
        rule.table = table.id;
        if (entry.jump != kNothing) {
          rule.actions = {Action::jump(tables_[entry.jump].id)};
        } else {
          rule.actions = rules_[entry.rules[0]].rule.actions;
          for (const std::uint32_t owner : entry.rules) {
            const auto& lines = rules_[owner].rule.from;
            rule.from.insert(rule.from.end(), lines.begin(), lines.end());
          }
          std::sort(rule.from.begin(), rule.from.end());
          rule.from.erase(std::unique(rule.from.begin(), rule.from.end()), rule.from.end());
        }
      }
    }
  }
  return layout;
}

}  // namespace greynic::optimizer::live
