/// CutChooser::best_guard: low ports jump away, so that a unit for 1024:65535 need not look.

#include <algorithm>
#include <map>
#include <set>

#include "src/chained/cut.h"

namespace greynic::optimizer::chained {

std::optional<Prefix> left_out(const std::vector<Prefix>& set, const Slot& slot) {
  // The prefix that holds value 0 and reaches up to the smallest value of the set.
  std::uint32_t low = slot.all();
  std::uint64_t size = 0;
  for (const Prefix& prefix : set) {
    const std::uint32_t wild = slot.all() & ~prefix.mask;
    if ((wild & (wild + 1)) != 0) return std::nullopt;  // no prefix
    low = std::min(low, prefix.value);
    size += std::uint64_t{wild} + 1;
  }
  if (low == 0 || (low & (low - 1)) != 0) return std::nullopt;
  if (size + low != std::uint64_t{slot.all()} + 1) return std::nullopt;
  return Prefix{0, slot.all() & ~(low - 1)};
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

}  // namespace

double CutChooser::guard_cost(const Node& node, const Guard& guard) const {
  const std::size_t words = guard.mask.size();
  double cost = node.all_weight;
  double entries = static_cast<double>(guard.values.size());
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
  for (const auto& value : guard.values) {
    std::vector<Share> shares;
    for (std::size_t row = 0; row < node.rows.size(); ++row) {
      if (!units_.meets(node.rows, row, value.data(), guard.mask.data())) continue;
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
    if (ports[guard.field] == guard.set) {
      ports[guard.field] = 0;
      count = std::max(1.0, count / 2.0);
    }
    const Word* bits = node.rows.hull.mask[row];
    const auto place = known.try_emplace({{bits, bits + words}, ports}, kind).first;
    kind_after[kind] = place->second;
    masks[place->second] = std::min(masks[place->second], count);
  }
  std::vector<Share> shares;
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    const bool inside =
        std::any_of(guard.values.begin(), guard.values.end(), [&](const auto& value) {
          return covers_all(node.rows.hull.mask[row], guard.mask) &&
                 units_.meets(node.rows, row, value.data(), guard.mask.data());
        });
    entries -= node.kind_written[node.kind[row]];
    if (inside) continue;
    shares.push_back({kind_after[node.kind[row]], node.weight[row]});
    const bool freed = node.rows.ports[row][guard.field] == guard.set;
    entries += freed ? written_without(row) : node.kind_written[node.kind[row]];
  }
  add(shares, masks);
  return cost + entries * entry_price_;  // fewer than before, where many rows are written out
}

std::optional<Guard> CutChooser::best_guard(const Node& node) const {
  std::map<std::pair<std::size_t, std::uint32_t>, double> gain;  // by field and set
  std::vector<Word> protocol = protocol_bits(units_.problem->columns);
  const std::size_t words = protocol.size();
  for (std::size_t w = 0; w < words; ++w) protocol[w] &= ~node.decided[w];
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    for (std::size_t field = 0; field < kPortFields; ++field) {
      const std::uint32_t set = node.rows.ports[row][field];
      if (set == 0 || units_.as_range[field] || !covers_all(node.rows.hull.mask[row], protocol))
        continue;
      gain[{field, set}] += node.weight[row] * static_cast<double>(units_.sets[set].size()) + 1e-9;
    }
  }
  std::optional<Guard> best;
  double best_gain = 0.0;
  for (const auto& [what, sum] : gain) {
    const auto [field, set] = what;
    if (!(sum > best_gain) || !left_out(units_.sets[set], units_.slot[field])) continue;
    best_gain = sum;
    best = Guard{field, set, {}, {}, 0.0};
  }
  if (!best) return best;
  const Prefix low = *left_out(units_.sets[best->set], units_.slot[best->field]);
  std::set<std::vector<Word>> values;
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    if (node.rows.ports[row][best->field] != best->set) continue;
    if (!covers_all(node.rows.hull.mask[row], protocol)) continue;
    std::vector<Word> value(words);
    for (std::size_t w = 0; w < words; ++w) value[w] = node.rows.hull.value[row][w] & protocol[w];
    values.insert(std::move(value));
  }
  best->mask = protocol;
  units_.slot[best->field].set(low.mask, best->mask.data());
  best->values.assign(values.begin(), values.end());

  best->cost = guard_cost(node, *best);
  return best;
}

}  // namespace greynic::optimizer::chained
