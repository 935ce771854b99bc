/// CutChooser::best_guard: low ports jump away, so that a unit for 1024:65535 need not look.

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "src/chained/cut.h"

namespace greynic::optimizer::chained {

std::vector<Prefix> left_out(const std::vector<Prefix>& set, const Slot& slot) {
  constexpr int kMost = 3;
  // All values from the smallest of the set on are in it; those below it are prefixes, by its bits.
  std::uint32_t low = slot.all();
  std::uint64_t size = 0;
  for (const Prefix& prefix : set) {
    const std::uint32_t wild = slot.all() & ~prefix.mask;
    if ((wild & (wild + 1)) != 0) return {};  // no prefix
    low = std::min(low, prefix.value);
    size += std::uint64_t{wild} + 1;
  }
  if (low == 0 || std::popcount(low) > kMost) return {};
  if (size + low != std::uint64_t{slot.all()} + 1) return {};
  std::vector<Prefix> out;
  for (std::uint32_t from = 0; from < low;) {
    const std::uint32_t count = std::bit_floor(low - from);
    out.push_back({from, slot.all() & ~(count - 1)});
    from += count;
  }
  return out;
}

namespace {

std::vector<Word> protocol_bits(const Columns& columns) {
  Match match;
  match.set(MatchField::kIpProtocol, 0);
  std::vector<Word> value(columns.words(), 0);
  std::vector<Word> bits(columns.words(), 0);
  columns.pack(match, value.data(), bits.data());
  return bits;
}

std::uint32_t last_of(const Prefix& prefix, const Slot& slot) {
  return prefix.value | (slot.all() & ~prefix.mask);
}

}  // namespace

bool Guard::frees(std::uint32_t set) const { return std::ranges::binary_search(sets, set); }

bool Guard::holds(const Units& units, const UnitRows& rows, std::size_t row) const {
  return std::ranges::any_of(away, [&](const Away& part) {
    return covers_all(rows.hull.mask[row], part.mask) &&
           std::ranges::any_of(part.values, [&](const auto& value) {
             return units.meets(rows, row, value.data(), part.mask.data());
           });
  });
}

bool Guard::meets(const Units& units, const UnitRows& rows, std::size_t row,
                  std::size_t protocol) const {
  return std::ranges::any_of(away, [&](const Away& part) {
    return units.meets(rows, row, part.values[protocol].data(), part.mask.data());
  });
}

double CutChooser::guard_cost(const Node& node, const Guard& guard) const {
  const std::size_t words = guard.headers.size();
  const auto matchers = static_cast<double>(guard.away.size());
  double cost = node.all_weight * matchers;
  double entries = 0.0;
  const auto add = [&](std::vector<Share>& shares, const std::vector<double>& masks) {
    double weight = 0.0;
    for (const Share& share : shares) weight += share.weight;
    cost += tree_cost(chain_cost(shares, masks), weight, 0.0);
  };
  // Entries that a row is written out to where the ports of the field are decided, or not asked for.
  const auto written_without = [&](std::size_t row) {
    const std::uint32_t set = node.rows.ports[row][guard.field];
    const double written = node.kind_written[node.kind[row]];
    return set == 0 ? written : written / static_cast<double>(units_.sets[set].size());
  };
  const auto low_row = [&](std::size_t row) {  // share of a unit's packets, roughly
    return node.rows.ports[row][guard.field] == 0 &&
                   units_.slot[guard.field].get(node.rows.hull.mask[row]) == 0
               ? 0.0
               : 1.0;
  };
  const std::size_t protocols = guard.away.front().values.size();
  entries += matchers * static_cast<double>(protocols);
  for (std::size_t protocol = 0; protocol < protocols; ++protocol) {
    std::vector<Share> shares;
    for (std::size_t row = 0; row < node.rows.size(); ++row) {
      if (!guard.meets(units_, node.rows, row, protocol)) continue;
      shares.push_back({node.kind[row], low_row(row) * node.weight[row]});
      entries += written_without(row);
    }
    add(shares, node.kind_masks);
  }
  // Freed units join the kinds that look at no port there, and are written out no more.
  std::vector<double> masks = node.kind_masks;
  std::map<std::pair<std::vector<Word>, PortIds>, std::uint32_t> known;
  std::vector<std::uint32_t> kind_after(masks.size());
  for (std::uint32_t kind = 0; kind < masks.size(); ++kind) {
    const std::uint32_t row = node.kind_example[kind];
    PortIds ports = node.rows.ports[row];
    double count = node.kind_masks[kind];
    if (guard.frees(ports[guard.field])) {
      ports[guard.field] = 0;
      count = std::max(1.0, count / (1.0 + matchers));
    }
    const Word* bits = node.rows.hull.mask[row];
    const auto place = known.try_emplace({{bits, bits + words}, ports}, kind).first;
    kind_after[kind] = place->second;
    masks[place->second] = std::min(masks[place->second], count);
  }
  std::vector<Share> shares;
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    const bool inside = guard.holds(units_, node.rows, row);
    entries -= node.kind_written[node.kind[row]];
    if (inside) continue;
    shares.push_back({kind_after[node.kind[row]], node.weight[row]});
    const bool freed = guard.frees(node.rows.ports[row][guard.field]);
    entries += freed ? written_without(row) : node.kind_written[node.kind[row]];
  }
  add(shares, masks);
  return cost + entries * entry_price_;  // fewer than before, where many rows are written out
}

std::optional<Guard> CutChooser::best_guard(const Node& node) const {
  std::map<std::pair<std::size_t, std::uint32_t>, double> gain;  // by field and set
  std::vector<Word> headers = protocol_bits(units_.problem->columns);
  const std::size_t words = headers.size();
  for (std::size_t w = 0; w < words; ++w) headers[w] &= ~node.decided[w];
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    for (std::size_t field = 0; field < kPortFields; ++field) {
      const std::uint32_t set = node.rows.ports[row][field];
      if (set == 0 || units_.as_range[field] || !covers_all(node.rows.hull.mask[row], headers))
        continue;
      gain[{field, set}] += node.weight[row] * static_cast<double>(units_.sets[set].size()) + 1e-9;
    }
  }
  const auto low_of = [&](std::size_t field, std::uint32_t set) {
    return left_out(units_.sets[set], units_.slot[field]);
  };
  std::optional<Guard> best;
  std::vector<Prefix> low;
  double best_gain = 0.0;
  for (const auto& [what, sum] : gain) {
    if (!(sum > best_gain)) continue;
    std::vector<Prefix> ports = low_of(what.first, what.second);
    if (ports.empty()) continue;
    best_gain = sum;
    low = std::move(ports);
    best = Guard{what.first, {}, headers, {}, 0.0};
  }
  if (!best) return best;
  // What leaves out some of these ports, and no others, is freed with it.
  const Slot& slot = units_.slot[best->field];
  for (const auto& entry : gain) {
    if (entry.first.first != best->field) continue;
    const std::vector<Prefix> ports = low_of(best->field, entry.first.second);
    if (!ports.empty() && last_of(ports.back(), slot) <= last_of(low.back(), slot)) {
      best->sets.push_back(entry.first.second);
    }
  }
  std::set<std::vector<Word>> protocols;
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    if (!best->frees(node.rows.ports[row][best->field])) continue;
    if (!covers_all(node.rows.hull.mask[row], headers)) continue;
    std::vector<Word> value(words);
    for (std::size_t w = 0; w < words; ++w) value[w] = node.rows.hull.value[row][w] & headers[w];
    protocols.insert(std::move(value));
  }
  for (const Prefix& prefix : low) {
    Guard::Away away{headers, {protocols.begin(), protocols.end()}};
    slot.set(prefix.mask, away.mask.data());
    for (auto& value : away.values) slot.set(prefix.value, value.data());
    best->away.push_back(std::move(away));
  }
  best->cost = guard_cost(node, *best);
  return best;
}

}  // namespace greynic::optimizer::chained
