#include "src/chained/cut.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "src/key_table.h"
#include "src/table_cut.h"

namespace greynic::optimizer::chained {
namespace {

/// Numbers for keys, in order of first appearance: open addressing, at most half full.
class KeyNumbers {
 public:
  explicit KeyNumbers(std::size_t most)
      : slots_(std::bit_ceil(std::max<std::size_t>(4, most * 2)), {0, kNoRow}) {}
  std::uint32_t number(std::uint64_t key) {
    auto& slot = find(key);
    if (slot.second == kNoRow) slot = {key, count_++};
    return slot.second;
  }
  [[nodiscard]] std::uint32_t lookup(std::uint64_t key) { return find(key).second; }
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  std::pair<std::uint64_t, std::uint32_t>& find(std::uint64_t key) {
    for (std::size_t i = key & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].second == kNoRow || slots_[i].first == key) return slots_[i];
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> slots_;
  std::uint32_t count_ = 0;
};

std::vector<Word> packed(const Columns& columns, const Mask& mask) {
  Match match;
  for (const FieldMask& part : mask.fields()) match.set(part.field, 0, part.bits);
  std::vector<Word> value(columns.words(), 0);
  std::vector<Word> bits(columns.words(), 0);
  columns.pack(match, value.data(), bits.data());
  return bits;
}

/// Kinds as they are inside a part of a cut.
struct KindsInside {
  KindsInside(const Node& node, const std::vector<Word>& mask) {
    const std::size_t words = mask.size();
    std::map<std::pair<std::vector<Word>, PortIds>, std::uint32_t> known;
    for (std::uint32_t kind = 0; kind < node.kind_example.size(); ++kind) {
      const std::uint32_t row = node.kind_example[kind];
      const Word* bits = node.rows.hull.mask[row];
      covers.push_back(covers_all(bits, mask));
      std::vector<Word> left(bits, bits + words);
      for (std::size_t w = 0; w < words; ++w) left[w] &= ~mask[w];
      const bool looks = std::any_of(left.begin(), left.end(), [](Word w) { return w != 0; });
      const auto [place, fresh] = known.try_emplace({std::move(left), node.rows.ports[row]},
                                                    static_cast<std::uint32_t>(masks.size()));
      if (fresh) {
        masks.push_back(node.kind_masks[kind]);
        open.push_back(looks);
      }
      inside.push_back(place->second);
    }
  }
  std::vector<bool> covers;           ///< by kind: looks at all bits of the cut
  std::vector<std::uint32_t> inside;  ///< by kind: its number in a part
  std::vector<double> masks;          ///< by that number
  std::vector<bool> open;             ///< by that number: some bit is still looked at
};

}  // namespace

ChainCost chain_cost(std::vector<Share>& shares, const std::vector<double>& kind_masks) {
  std::sort(shares.begin(), shares.end(),
            [](const Share& a, const Share& b) { return a.kind < b.kind; });
  std::size_t kinds = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (kinds > 0 && shares[kinds - 1].kind == shares[i].kind) {
      shares[kinds - 1].weight += shares[i].weight;
    } else {
      shares[kinds++] = shares[i];
    }
  }
  shares.resize(kinds);
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) {
    return a.weight * kind_masks[b.kind] > b.weight * kind_masks[a.kind];
  });
  ChainCost cost;
  for (const Share& share : shares) {
    const double masks = kind_masks[share.kind];
    cost.tried += share.weight * (cost.matchers + (masks + 1.0) / 2.0);
    cost.matchers += masks;
  }
  return cost;
}

double tree_mean(double chain_mean) {
  constexpr double kAsIs = 2.0;    // short chains stay
  constexpr double kDouble = 0.8;  // more for each doubling
  return chain_mean <= kAsIs ? chain_mean : kAsIs + kDouble * std::log2(chain_mean / kAsIs);
}

double tree_cost(const ChainCost& chain, double weight, double passing) {
  double cost = weight > 0.0 ? weight * tree_mean(chain.tried / weight) : 0.0;
  if (passing > 0.0) cost += passing * (1.0 + tree_mean(chain.matchers));
  return cost;
}

std::size_t CutChooser::most_copies(const Node& node, std::size_t row) const {
  constexpr double kGain = 8.0;  // matchers that a unit is spared by leaving the rest
  const double worth = kGain * node.weight[row] / std::max(entry_price_, 1e-12);
  return static_cast<std::size_t>(std::min(worth, static_cast<double>(Conflicts::kMost)));
}

double CutChooser::chain(const Node& node) const {
  std::vector<Share> shares;
  double hit = 0.0;
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    shares.push_back({node.kind[row], node.weight[row]});
    hit += node.weight[row];
  }
  const ChainCost cost = chain_cost(shares, node.kind_written);
  return cost.tried + (node.all_weight - hit) * cost.matchers;
}

double CutChooser::cost_of(const Node& node, const std::vector<Word>& mask) const {
  const std::size_t words = mask.size();
  const std::size_t n = node.rows.size();
  const Ternaries& hull = node.rows.hull;
  const KindsInside kinds(node, mask);
  KeyNumbers parts(n);
  std::vector<std::uint32_t> part(n, kNoRow);
  std::size_t copies = 0;
  std::vector<std::pair<std::uint32_t, Share>> inside;  // part, share
  std::vector<Share> rest;
  double rest_weight = 0.0;
  double in_weight = 0.0;
  for (std::size_t row = 0; row < n; ++row) {
    bool in = kinds.covers[node.kind[row]] && !node.blocked[row];
    std::size_t copied = 0;
    if (in && !node.blockers[row].empty()) {
      for (const std::uint32_t other : node.blockers[row]) {
        if (part[other] != kNoRow) continue;
        ++copied;
        in = in && !node.blocked[other];
      }
      in = in && copied <= most_copies(node, row);
    }
    if (!in) {
      rest.push_back({node.kind[row], node.weight[row]});
      rest_weight += node.weight[row];
      continue;
    }
    part[row] = parts.number(hash_under(hull.value[row], mask.data(), words));
    inside.push_back({part[row], {kinds.inside[node.kind[row]], node.weight[row]}});
    in_weight += node.weight[row];
    if (copied == 0) continue;
    for (const std::uint32_t other : node.blockers[row]) {
      if (part[other] != kNoRow) continue;
      inside.push_back({part[row], {kinds.inside[node.kind[other]], 0.0}});
    }
    copies += copied;
  }
  if (parts.count() == 0) return 1e300;
  // Packets of the rest that pass through a part.
  std::vector<double> passing(parts.count(), 0.0);
  for (const std::uint32_t packet : node.packets) {
    const std::uint32_t key = parts.lookup(hash_under(packets_[packet], mask.data(), words));
    if (key != kNoRow) passing[key] += packet_weight_[packet];
  }
  // By part.
  std::vector<std::uint32_t> begin(parts.count() + 1, 0);
  for (const auto& entry : inside) ++begin[entry.first + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<Share> sorted(inside.size());
  {
    std::vector<std::uint32_t> at(begin.begin(), begin.end() - 1);
    for (const auto& entry : inside) sorted[at[entry.first]++] = entry.second;
  }
  double cost = node.all_weight;
  double entries = static_cast<double>(copies);
  std::vector<Share> shares;
  for (std::uint32_t i = 0; i < parts.count(); ++i) {
    shares.assign(sorted.begin() + begin[i], sorted.begin() + begin[i + 1]);
    double weight = 0.0;
    for (const Share& share : shares) weight += share.weight;
    const double through = std::max(0.0, passing[i] - weight);
    if (shares.size() == 1 && kinds.masks[shares[0].kind] == 1.0) {
      if (!kinds.open[shares[0].kind]) continue;  // the cut itself decides
    }
    const ChainCost chain = chain_cost(shares, kinds.masks);
    cost += tree_cost(chain, weight, through);
    entries += 2.0;
  }
  const double other = std::max(0.0, node.all_weight - in_weight);
  ChainCost chain = chain_cost(rest, node.kind_masks);
  cost += tree_cost(chain, rest_weight, 0.0);
  const double missing = std::max(0.0, other - rest_weight);
  cost += missing * tree_mean(chain.matchers);
  return cost + entries * entry_price_;
}

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
  std::vector<std::vector<Word>> list;
  for (const auto& bits : result) {
    if (std::any_of(bits.begin(), bits.end(), [](Word w) { return w != 0; })) list.push_back(bits);
  }
  return list;
}

std::vector<Cut> CutChooser::best_cuts(const Node& node) const {
  const bool large = node.rows.size() > 20'000;
  const auto singles = candidates(node, large ? 4 : 6);
  std::set<std::vector<Word>> tried;
  std::vector<Cut> found;
  const auto try_mask = [&](const std::vector<Word>& mask) {
    if (!tried.insert(mask).second) return;
    found.push_back({mask, cost_of(node, mask)});
  };
  for (const auto& mask : singles) try_mask(mask);
  const std::array<std::size_t, 2> beam = {large ? 1U : 3U, 1U};
  for (const std::size_t width : beam) {
    std::sort(found.begin(), found.end(),
              [](const Cut& a, const Cut& b) { return a.cost < b.cost; });
    std::vector<std::vector<Word>> seeds;
    for (std::size_t i = 0; i < std::min(width, found.size()); ++i) seeds.push_back(found[i].mask);
    for (const auto& seed : seeds) {
      for (const auto& extra : singles) {
        std::vector<Word> mask = seed;
        for (std::size_t w = 0; w < mask.size(); ++w) mask[w] |= extra[w];
        try_mask(mask);
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Cut& a, const Cut& b) { return a.cost < b.cost; });
  constexpr std::size_t kShown = 8;
  found.resize(std::min(found.size(), kShown));
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
    bool in = covers_all(hull.mask[row], mask) && !node.blocked[row];
    const std::uint64_t key = hash_under(hull.value[row], mask.data(), words);
    const std::uint32_t known = in ? numbers.lookup(key) : kNoRow;
    needed.clear();
    if (in && !node.blockers[row].empty()) {
      for (std::size_t w = 0; w < words; ++w) value[w] = hull.value[row][w] & mask[w];
      const std::size_t most = most_copies(node, row);
      const auto need = [&](std::uint32_t other) {
        if (result.part_of_row[other] != kNoRow) return true;  // same part, or no packet in common
        if (known != kNoRow &&
            std::find(copied[known].begin(), copied[known].end(), other) != copied[known].end()) {
          return true;
        }
        if (std::find(needed.begin(), needed.end(), other) != needed.end()) return true;
        if (node.blocked[other]) return false;
        needed.push_back(other);
        return needed.size() <= most;
      };
      for (const std::uint32_t other : node.blockers[row]) in = in && need(other);
      for (std::size_t i = 0; in && i < needed.size(); ++i) {
        for (const std::uint32_t other : node.blockers[needed[i]]) {
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
