#include "src/chained/cut.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "src/chained/key_numbers.h"
#include "src/key_table.h"
#include "src/table_cut.h"

namespace greynic::optimizer::chained {
namespace {

std::vector<Word> packed(const Columns& columns, const Mask& mask) {
  Match match;
  for (const FieldMask& part : mask.fields()) match.set(part.field, 0, part.bits);
  std::vector<Word> value(columns.words(), 0);
  std::vector<Word> bits(columns.words(), 0);
  columns.pack(match, value.data(), bits.data());
  return bits;
}

bool cheaper(const Cut& a, const Cut& b) { return a.cost < b.cost; }

}  // namespace

std::vector<std::vector<Word>> CutChooser::candidates(const Node& node, std::size_t most) const {
  const Columns& columns = units_.problem->columns;
  struct Seen {
    double weight = 0.0;
    Mask whole;
  };
  std::map<MatchField, std::map<U128, Seen>> by_field;
  std::map<std::vector<Word>, double> by_mask;
  std::vector<double> kind_weight(node.kind_example.size(), 0.0);
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    kind_weight[node.kind[row]] += node.weight[row] + 1e-9;
  }
  for (std::size_t kind = 0; kind < kind_weight.size(); ++kind) {
    const Word* bits = node.rows.hull.mask[node.kind_example[kind]];
    by_mask[{bits, bits + columns.words()}] += kind_weight[kind];
    const Mask mask = columns.unpack_mask(bits);
    for (const FieldMask& entry : mask.fields()) {
      Seen& seen = by_field[entry.field][entry.bits];
      if (seen.weight == 0.0) {
        seen.whole.add(entry.field, entry.bits);
        add_headers(seen.whole, entry.field, mask);
      }
      seen.weight += kind_weight[kind];
    }
  }
  std::set<std::vector<Word>> result;
  for (const auto& [field, masks] : by_field) {
    // Thinned out by the weight that each adds.
    double all = 0.0;
    for (const auto& entry : masks) all += entry.second.weight;
    double so_far = 0.0;
    double next = 0.0;
    for (const auto& [bits, seen] : masks) {
      so_far += seen.weight;
      if (so_far < next && masks.size() > most) continue;
      next += all / static_cast<double>(most);
      result.insert(packed(columns, seen.whole));
    }
  }
  std::vector<std::pair<double, std::vector<Word>>> heavy;
  for (const auto& [bits, weight] : by_mask) heavy.emplace_back(-weight, bits);
  std::sort(heavy.begin(), heavy.end());
  heavy.resize(std::min(heavy.size(), most));
  for (std::size_t i = 0; i < heavy.size(); ++i) {
    result.insert(heavy[i].second);
    for (std::size_t j = 0; j < i && j < 3; ++j) {
      result.insert(common(heavy[i].second, heavy[j].second));
    }
  }
  // Codes of ports are looked at from their first bit on, or not at all.
  std::set<std::vector<Word>> parting;
  for (std::vector<Word> bits : result) {
    for (std::size_t i = 0; i < kPortFields; ++i) {
      const Slot& slot = units_.slot[i];
      const bool decided = (slot.get(bits.data()) & ~slot.get(node.decided.data())) == 0;
      if (units_.as_range[i] && decided) slot.set(0, bits.data());
    }
    parting.insert(std::move(bits));
  }
  std::vector<std::vector<Word>> list;
  for (const auto& bits : parting) {
    if (std::any_of(bits.begin(), bits.end(), [](Word w) { return w != 0; })) list.push_back(bits);
  }
  return list;
}

std::vector<Cut> CutChooser::best_cuts(const Node& node, double chain, std::size_t most) const {
  const bool large = node.rows.size() > 20'000;
  const auto singles = candidates(node, large ? 4 : 6);
  const KindSums sums(node);
  const std::array<std::size_t, 2> beam = {large ? 1U : 3U, 1U};
  KeyNumbers& tried = scratch_.tried;
  tried.restart(singles.size() * (1 + beam[0] + beam[1]));
  std::vector<Cut> found;  // cheapest first
  std::vector<Cut> bounds;
  const auto bound = [&](const std::vector<Word>& mask) {
    const std::uint32_t known = tried.count();
    if (tried.number(hash_under(mask.data(), mask.data(), mask.size())) != known) return;
    const double least = least_cost(node, sums, mask);
    if (least < chain) bounds.push_back({mask, least});
  };
  // Cheapest bound first: once so many cuts cost less than the next bound, none behind it matters.
  const auto try_bounds = [&] {
    std::sort(bounds.begin(), bounds.end(), cheaper);
    for (Cut& cut : bounds) {
      if (found.size() == most && cut.cost >= found.back().cost) break;
      cut.cost = cost_of(node, cut.mask);
      found.insert(std::upper_bound(found.begin(), found.end(), cut, cheaper), std::move(cut));
      if (found.size() > most) found.pop_back();
    }
    bounds.clear();
  };
  for (const auto& mask : singles) bound(mask);
  try_bounds();
  std::vector<Word> wider;
  for (const std::size_t width : beam) {
    for (std::size_t i = 0; i < std::min(width, found.size()); ++i) {
      for (const auto& extra : singles) {
        wider = found[i].mask;
        for (std::size_t w = 0; w < extra.size(); ++w) wider[w] |= extra[w];
        bound(wider);
      }
    }
    try_bounds();
  }
  return found;
}

CutParts CutChooser::split(const Node& node, const std::vector<Word>& mask) const {
  const std::size_t words = mask.size();
  const std::size_t n = node.rows.size();
  const Ternaries& hull = node.rows.hull;
  CutParts result;
  result.part_of_row.assign(n, kNoRow);
  KeyNumbers numbers(n);
  std::vector<Word> value(words);
  std::vector<std::uint32_t> needed;
  std::vector<std::vector<std::uint32_t>> copied;  // by part
  for (std::uint32_t row = 0; row < n; ++row) {
    bool in = covers_all(hull.mask[row], mask) && !node.conflicts.many[row];
    const std::uint64_t key = hash_under(hull.value[row], mask.data(), words);
    const std::uint32_t known = in ? numbers.lookup(key) : kNoRow;
    needed.clear();
    if (in && !node.conflicts.before[row].empty()) {
      for (std::size_t w = 0; w < words; ++w) value[w] = hull.value[row][w] & mask[w];
      const std::size_t most = most_copies(node, row);
      const auto need = [&](std::uint32_t other) {
        if (result.part_of_row[other] != kNoRow) return true;  // same part, or no packet in common
        if (known != kNoRow &&
            std::find(copied[known].begin(), copied[known].end(), other) != copied[known].end()) {
          return true;
        }
        if (std::find(needed.begin(), needed.end(), other) != needed.end()) return true;
        if (node.conflicts.many[other]) return false;
        needed.push_back(other);
        return needed.size() <= most;
      };
      for (const std::uint32_t other : node.conflicts.before[row]) in = in && need(other);
      for (std::size_t i = 0; in && i < needed.size(); ++i) {
        for (const std::uint32_t other : node.conflicts.before[needed[i]]) {
          in = in && (!units_.meets(node.rows, other, value.data(), mask.data()) || need(other));
        }
      }
    }
    if (!in) {
      result.rest.push_back(row);
      continue;
    }
    const std::uint32_t part = numbers.number(key);
    if (part == result.parts.size()) {
      result.parts.push_back({row, {}});
      copied.emplace_back();
    }
    result.part_of_row[row] = part;
    result.parts[part].rows.push_back(row);
    for (const std::uint32_t other : needed) {
      result.parts[part].rows.push_back(other);
      copied[part].push_back(other);
    }
  }
  for (auto& part : result.parts) std::sort(part.rows.begin(), part.rows.end());
  return result;
}

}  // namespace greynic::optimizer::chained
