#include "src/chained/cut.h"

#include <algorithm>
#include <array>
#include <limits>

#include "src/chained/key_numbers.h"

namespace greynic::optimizer::chained {
namespace {

bool cheaper(const Cut& a, const Cut& b) { return a.cost < b.cost; }

}  // namespace

std::vector<std::vector<Word>> CutChooser::candidates(const Node& node, std::size_t most) const {
  std::vector<double> kind_weight(node.kind_example.size(), 0.0);
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    kind_weight[node.kind[row]] += node.weight[row] + 1e-9;
  }
  std::vector<std::vector<Word>> result;
  add_fields(node, kind_weight, most, result);
  add_heavy(node, kind_weight, most, result);
  // Codes of ports are looked at from their first bit on, or not at all.
  for (std::vector<Word>& bits : result) {
    for (std::size_t i = 0; i < kPortFields; ++i) {
      const Slot& slot = units_.slot[i];
      const bool decided = (slot.get(bits.data()) & ~slot.get(node.decided.data())) == 0;
      if (units_.as_range[i] && decided) slot.set(0, bits.data());
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  std::erase_if(result, [](const std::vector<Word>& bits) {
    return std::ranges::all_of(bits, [](Word word) { return word == 0; });
  });
  return result;
}

/// What kinds look at of single fields, thinned out by the weight that each adds.
void CutChooser::add_fields(const Node& node, const std::vector<double>& kind_weight,
                            std::size_t most, std::vector<std::vector<Word>>& masks) const {
  struct Seen {
    const Word* bits;  ///< of the first kind that looks at these
    double weight;
  };
  std::vector<Seen> seen;
  for (std::size_t field = 0; field < fields_.fields(); ++field) {
    seen.clear();
    for (std::size_t kind = 0; kind < kind_weight.size(); ++kind) {
      const Word* const bits = node.rows.hull.mask[node.kind_example[kind]];
      if (!fields_.looks_at(bits, field)) continue;
      const auto place = std::ranges::lower_bound(
          seen, bits, [&](const Word* a, const Word* b) { return fields_.less(a, b, field); },
          &Seen::bits);
      if (place != seen.end() && !fields_.less(bits, place->bits, field)) {
        place->weight += kind_weight[kind];
      } else {
        seen.insert(place, {bits, kind_weight[kind]});
      }
    }
    double all = 0.0;
    for (const Seen& entry : seen) all += entry.weight;
    double so_far = 0.0;
    double next = 0.0;
    for (const Seen& entry : seen) {
      so_far += entry.weight;
      if (so_far < next && seen.size() > most) continue;
      next += all / static_cast<double>(most);
      masks.push_back(fields_.with_headers(entry.bits, field));
    }
  }
}

/// Masks of the heaviest kinds, and what the first of them have in common with others.
void CutChooser::add_heavy(const Node& node, const std::vector<double>& kind_weight,
                           std::size_t most, std::vector<std::vector<Word>>& masks) const {
  const std::size_t words = node.decided.size();
  struct Heavy {
    const Word* bits;
    double weight;
  };
  std::vector<Heavy> heavy;
  KeyNumbers& keys = scratch_->keys;
  keys.restart(kind_weight.size());
  for (std::size_t kind = 0; kind < kind_weight.size(); ++kind) {
    const Word* const bits = node.rows.hull.mask[node.kind_example[kind]];
    const std::uint32_t number = keys.number(hash_under(bits, bits, words));
    if (number == heavy.size()) heavy.push_back({bits, 0.0});
    heavy[number].weight += kind_weight[kind];
  }
  const std::size_t count = std::min(heavy.size(), most);
  const auto middle = heavy.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(heavy.begin(), middle, heavy.end(), [&](const Heavy& a, const Heavy& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return std::lexicographical_compare(a.bits, a.bits + words, b.bits, b.bits + words);
  });
  for (std::size_t i = 0; i < count; ++i) {
    masks.emplace_back(heavy[i].bits, heavy[i].bits + words);
    for (std::size_t j = 0; j < i && j < 3; ++j) {
      std::vector<Word>& both = masks.emplace_back(words);
      for (std::size_t w = 0; w < words; ++w) both[w] = heavy[i].bits[w] & heavy[j].bits[w];
    }
  }
}

std::vector<Cut> CutChooser::best_cuts(const Node& node, double chain, std::size_t most) const {
  constexpr double kNoBound = std::numeric_limits<double>::infinity();
  const bool large = node.rows.size() > 20'000;
  const auto singles = candidates(node, large ? 4 : 6);
  const KindSums sums(node);
  const std::array<std::size_t, 2> beam = {large ? 1U : 3U, 1U};
  KeyNumbers& tried = scratch_->tried;
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
  const auto try_bounds = [&](std::size_t wanted, double limit) {
    std::sort(bounds.begin(), bounds.end(), cheaper);
    for (Cut& cut : bounds) {
      const double dearest = found.size() < wanted ? limit : found[wanted - 1].cost;
      if (cut.cost >= dearest) break;
      cut.cost = cost_of(node, cut.mask, dearest);
      if (cut.cost >= dearest) continue;
      found.insert(std::upper_bound(found.begin(), found.end(), cut, cheaper), std::move(cut));
      found.resize(std::min(found.size(), wanted));
    }
    bounds.clear();
  };
  for (const auto& mask : singles) bound(mask);
  try_bounds(std::max(most, beam[0]), kNoBound);  // wider ones come of dear ones, too
  std::vector<Word> wider;
  for (const std::size_t width : beam) {
    for (std::size_t i = 0; i < std::min(width, found.size()); ++i) {
      for (const auto& extra : singles) {
        wider = found[i].mask;
        for (std::size_t w = 0; w < extra.size(); ++w) wider[w] |= extra[w];
        bound(wider);
      }
    }
    try_bounds(most, chain);
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
    bool in = covers_all(hull.mask[row], mask) && node.conflicts.many[row] == 0;
    const std::uint64_t key = hash_under(hull.value[row], mask.data(), words);
    const std::uint32_t known = in ? numbers.lookup(key) : kNoRow;
    needed.clear();
    if (in && !node.conflicts.before(row).empty()) {
      for (std::size_t w = 0; w < words; ++w) value[w] = hull.value[row][w] & mask[w];
      const std::size_t most = most_copies(node, row);
      const auto need = [&](std::uint32_t other) {
        if (result.part_of_row[other] != kNoRow) return true;  // same part, or no packet in common
        if (known != kNoRow &&
            std::find(copied[known].begin(), copied[known].end(), other) != copied[known].end()) {
          return true;
        }
        if (std::find(needed.begin(), needed.end(), other) != needed.end()) return true;
        if (node.conflicts.many[other] != 0) return false;
        needed.push_back(other);
        return needed.size() <= most;
      };
      for (const std::uint32_t other : node.conflicts.before(row)) in = in && need(other);
      for (std::size_t i = 0; in && i < needed.size(); ++i) {
        for (const std::uint32_t other : node.conflicts.before(needed[i])) {
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
