/// What sends packets to tables of their own: cuts, guards and filters.

#include <map>

#include "src/chained/grower.h"

namespace greynic::optimizer::chained {

bool Grower::make_cut(Node& node, const std::vector<Word>& mask, std::uint32_t& table,
                      std::uint32_t exit, Node& rest, Way& way, std::size_t& deepest) {
  const CutParts parts = chooser_.split(node, mask);
  if (parts.parts.empty()) return false;
  if (parts.parts.size() + tables() > options_.most_tables) return false;
  tried_ += node.all_weight;
  const std::size_t words = mask.size();
  const auto value_of = [&](std::size_t part) {
    return node.rows.hull.value[parts.parts[part].example];
  };
  part_keys_.restart(parts.parts.size());
  std::vector<Node> inside;
  inside.reserve(parts.parts.size());
  std::vector<Word> bits(words);
  for (std::size_t i = 0; i < parts.parts.size(); ++i) {
    part_keys_.number(hash_under(value_of(i), mask.data(), words));
    inside.emplace_back(words);
    inside[i].filters = node.filters;
    for (std::size_t w = 0; w < words; ++w) inside[i].decided[w] = node.decided[w] | mask[w];
    for (std::size_t w = 0; w < words; ++w) bits[w] = value_of(i)[w] & mask[w];
    inside[i].rows.reserve(parts.parts[i].rows.size());
    for (const std::uint32_t row : parts.parts[i].rows) {
      units_.add_within(inside[i].rows, node.rows, row, bits.data(), mask.data());
    }
  }
  std::vector<std::uint32_t> undecided;
  for (const std::uint32_t packet : node.packets) {
    const std::uint32_t part = part_keys_.lookup(hash_under(packets_[packet], mask.data(), words));
    (part == kNoRow ? undecided : inside[part].packets).push_back(packet);
  }
  double missing = 0.0;
  for (const std::uint32_t packet : undecided) missing += packet_weight_[packet];
  // The rest, and the packets that no part decides.
  rest.decided = node.decided;
  rest.filters = node.filters;
  rest.rows.reserve(parts.rest.size());
  for (const std::uint32_t row : parts.rest) {
    rest.rows.add(node.rows.hull.value[row], node.rows.hull.mask[row], node.rows.ports[row],
                  node.rows.unit[row]);
  }
  const bool fixes_ports = std::ranges::any_of(
      units_.slot, [&](const Slot& slot) { return slot.get(mask.data()) != 0; });
  const Meeting meeting = fixes_ports ? Meeting::kOfPorts : Meeting::kSure;
  PlanMatcher matcher = ranged::matcher_on(units_, mask.data());
  bool comes_back = false;
  std::vector<bool> ends;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    ends.push_back(end_at_last_word(inside[i]));
    comes_back = comes_back || !ends.back();
    inherit(node, parts.parts[i].rows, inside[i], meeting);
  }
  inherit(node, parts.rest, rest, Meeting::kSure);
  const bool something_left = rest.rows.size() > 0;
  std::uint32_t after = exit;
  if (comes_back && something_left) {
    after = new_table();
  }
  // A packet is decided in its part when its unit is there.
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (ends[i]) continue;
    for (const std::uint32_t unit : inside[i].rows.unit) local_[unit] = 0;
    for (const std::uint32_t packet : inside[i].packets) {
      const std::uint32_t unit = decider_[packet];
      if (unit == kNoRow || local_[unit] == kNoRow) undecided.push_back(packet);
    }
    for (const std::uint32_t unit : inside[i].rows.unit) local_[unit] = kNoRow;
  }
  std::sort(undecided.begin(), undecided.end());
  rest.packets = std::move(undecided);
  for (Node& part : inside) put_off(part);
  put_off(rest);
  std::size_t last = way.jumps;  // jumps that lead to the parts' ends
  entries_ += parts.parts.size() * (comes_back ? 2 : 1);
  for (std::size_t i = 0; i < inside.size(); ++i) {
    for (std::size_t w = 0; w < words; ++w) bits[w] = value_of(i)[w] & mask[w];
    PlanEntry& entry = ranged::add_entry(units_, bits.data(), mask.data(), matcher);
    for (const std::uint32_t packet : inside[i].packets) entry.weight += packet_weight_[packet];
    if (inside[i].rows.takes_all(0)) {
      entry.unit = inside[i].rows.unit[0];
    } else {
      entry.table = new_table();
      last = std::max(last, grow(std::move(inside[i]), entry.table, after, way.into_part()));
    }
  }
  plan_.edit(table).matchers.push_back(std::move(matcher));
  if (after == exit) {
    deepest = std::max(deepest, last);
  } else {
    way.jumps = last + 1;
    plan_.edit(table).exit = after;
    plan_.edit(table).missing = missing;
    tried_ += missing;
    table = after;
  }
  return true;
}

Node Grower::put_guard(Node node, const Guard& guard, std::uint32_t table, std::uint32_t exit,
                       const Way& way, std::size_t& deepest) {
  const std::size_t words = guard.headers.size();
  const auto inside = [&](const std::vector<Word>& decided) {
    Node made(words);
    made.decided = decided;
    made.filters = node.filters;
    return made;
  };
  // Low ports of one prefix are decided where they lead to; of several, the protocol is.
  const Guard::Away& first = guard.away.front();
  const bool lone = guard.away.size() == 1;
  const std::vector<Word>& known = lone ? first.mask : guard.headers;
  std::vector<Word> decided(words);
  for (std::size_t w = 0; w < words; ++w) decided[w] = node.decided[w] | known[w];
  std::vector<Node> low;
  for (std::size_t protocol = 0; protocol < first.values.size(); ++protocol) {
    low.push_back(inside(decided));
    std::vector<std::uint32_t> from;
    for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
      if (!guard.meets(units_, node.rows, row, protocol)) continue;
      units_.add_within(low.back().rows, node.rows, row, first.values[protocol].data(),
                        known.data());
      from.push_back(row);
    }
    inherit(node, std::move(from), low.back(), Meeting::kUncertain);
  }
  std::vector<PlanMatcher> matchers;
  for (const Guard::Away& away : guard.away) {
    matchers.emplace_back(away.mask.data(), words);
    for (const auto& value : away.values) {
      matchers.back().values.add(value.data());
      matchers.back().entries.emplace_back();
    }
  }
  Node behind = inside(node.decided);
  for (const std::uint32_t packet : node.packets) {
    Node* place = &behind;
    for (std::size_t i = 0; i < matchers.size(); ++i) {
      for (std::size_t protocol = 0; protocol < low.size(); ++protocol) {
        const Guard::Away& away = guard.away[i];
        if (!matches(away.values[protocol].data(), away.mask.data(), packets_[packet], words))
          continue;
        place = &low[protocol];
        matchers[i].entries[protocol].weight += packet_weight_[packet];
      }
    }
    place->packets.push_back(packet);
  }
  std::vector<std::uint32_t> from;
  for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
    if (guard.holds(units_, node.rows, row)) continue;
    const Word* value = node.rows.hull.value[row];
    const Word* mask = node.rows.hull.mask[row];
    PortIds ports = node.rows.ports[row];
    const bool freed = guard.frees(ports[guard.field]) && covers_all(mask, guard.headers);
    if (freed) ports[guard.field] = 0;
    behind.rows.add(value, mask, ports, node.rows.unit[row]);
    from.push_back(row);
  }
  inherit(node, std::move(from), behind, Meeting::kUncertain);
  tried_ += node.all_weight * static_cast<double>(matchers.size());
  for (Node& part : low) put_off(part);
  put_off(behind);
  for (std::size_t protocol = 0; protocol < low.size(); ++protocol) {
    PlanEntry to;
    const bool empty = low[protocol].rows.size() == 0;
    if (!empty && low[protocol].rows.takes_all(0)) {
      to.unit = low[protocol].rows.unit[0];
    } else if (empty && exit != kNowhere) {
      to.table = exit;
    } else {
      to.table = new_table();
      deepest = std::max(deepest, grow(std::move(low[protocol]), to.table, exit, way.into_part()));
    }
    for (PlanMatcher& matcher : matchers) {
      to.weight = matcher.entries[protocol].weight;
      matcher.entries[protocol] = to;
    }
  }
  for (PlanMatcher& matcher : matchers) {
    entries_ += matcher.entries.size();
    plan_.edit(table).matchers.push_back(std::move(matcher));
  }
  return behind;
}

std::uint32_t Grower::send_away(const Node& node, const std::vector<Word>& mask,
                                std::uint32_t table, Node& with, Node& without) {
  const std::size_t words = mask.size();
  PlanMatcher matcher = ranged::matcher_on(units_, mask.data());
  std::map<std::uint64_t, std::size_t> known;
  const std::uint32_t target = new_table();
  std::vector<std::uint32_t> from;
  for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
    const Word* value = node.rows.hull.value[row];
    if (!covers_all(node.rows.hull.mask[row], mask)) {
      without.rows.add(value, node.rows.hull.mask[row], node.rows.ports[row], node.rows.unit[row]);
      from.push_back(row);
      continue;
    }
    if (!known.try_emplace(hash_under(value, mask.data(), words), matcher.entries.size()).second)
      continue;
    ranged::add_entry(units_, value, mask.data(), matcher).table = target;
  }
  inherit(node, std::move(from), without, Meeting::kSure);
  for (const std::uint32_t packet : node.packets) {
    tried_ += packet_weight_[packet];
    const auto found = known.find(hash_under(packets_[packet], mask.data(), words));
    (found == known.end() ? without : with).packets.push_back(packet);
    if (found != known.end()) matcher.entries[found->second].weight += packet_weight_[packet];
  }
  entries_ += matcher.entries.size();
  plan_.edit(table).matchers.push_back(std::move(matcher));
  return target;
}

Node Grower::put_filter(Node node, const Filter& filter, std::uint32_t table, std::uint32_t exit,
                        const Way& way, std::size_t& deepest) {
  const auto child = [&] {
    Node made(filter.first.size());
    made.decided = node.decided;
    made.filters = node.filters + 1;
    return made;
  };
  Node without = child();
  Node one = child();
  Node other = child();
  Node both = child();
  const std::uint32_t first = send_away(node, filter.first, table, one, without);
  one.rows = node.rows;
  one.conflicts = node.conflicts;
  const std::uint32_t second = send_away(one, filter.second, first, both, other);
  both.rows = std::move(node.rows);
  both.conflicts = std::move(node.conflicts);
  for (Node* const later : {&without, &other, &both}) put_off(*later);
  deepest = std::max(deepest, grow(std::move(other), first, exit, {way.jumps + 1, way.most}));
  deepest = std::max(deepest, grow(std::move(both), second, exit, {way.jumps + 2, way.most}));
  return without;
}

}  // namespace greynic::optimizer::chained
