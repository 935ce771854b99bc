/// CutChooser::cost_of and its neighbours: what a chain, a tree and a cut cost, by rules of thumb. The
/// search prices some hundred cuts for each node, so nothing here allocates once it is warm.

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/chained/cut.h"

namespace greynic::optimizer::chained {
namespace {

/// `shares` are of one kind each.
ChainCost cost_in_order(std::vector<Share>& shares, const std::vector<double>& kind_masks) {
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) {
    const double left = a.weight * kind_masks[b.kind];
    const double right = b.weight * kind_masks[a.kind];
    return left != right ? left > right : a.kind < b.kind;
  });
  ChainCost cost;
  for (const Share& share : shares) cost.add(share.weight, kind_masks[share.kind]);
  return cost;
}

}  // namespace

std::uint64_t kind_key(const Word* mask, const std::vector<Word>& without, const PortIds& ports) {
  std::uint64_t hash = std::uint64_t{ports[0]} << 32 | ports[1];
  for (std::size_t w = 0; w < without.size(); ++w) {
    hash = (hash ^ (mask[w] & ~without[w])) * 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

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
  return cost_in_order(shares, kind_masks);
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

KindSums::KindSums(const Node& node) : weight(node.kind_example.size(), 0.0) {
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    weight[node.kind[row]] += node.weight[row];
  }
  for (std::uint32_t kind = 0; kind < weight.size(); ++kind) order.push_back(kind);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return weight[a] * node.kind_masks[b] > weight[b] * node.kind_masks[a];
  });
}

std::size_t CutChooser::most_copies(const Node& node, std::size_t row) const {
  constexpr double kGain = 8.0;  // matchers that a unit is spared by leaving the rest
  constexpr double kMostCopies = 100.0;
  const double worth = kGain * node.weight[row] / std::max(entry_price_, 1e-12);
  return static_cast<std::size_t>(std::min(worth, kMostCopies));
}

ChainCost CutChooser::chain_of(const Node& node, const std::vector<double>& kind_masks) const {
  std::vector<Share>& shares = scratch_->shares;
  shares.clear();
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    shares.push_back({node.kind_class[node.kind[row]], node.weight[row]});
  }
  return chain_cost(shares, kind_masks);
}

double CutChooser::chain(const Node& node) const {
  double hit = 0.0;
  for (const double weight : node.weight) hit += weight;
  const ChainCost cost = chain_of(node, node.kind_written);
  return cost.tried + (node.all_weight - hit) * cost.matchers;
}

double CutChooser::least_cost(const Node& node, const KindSums& sums,
                              const std::vector<Word>& mask) const {
  ChainCost rest;
  double weight = 0.0;
  std::vector<double>& left = scratch_->rest_weight;  // by class; negative: no kind
  left.assign(node.kind_example.size(), -1.0);
  for (const std::uint32_t kind : sums.order) {
    if (covers_all(node.rows.hull.mask[node.kind_example[kind]], mask)) continue;
    double& here = left[node.kind_class[kind]];
    here = std::max(0.0, here) + sums.weight[kind];
  }
  for (const std::uint32_t kind : sums.order) {
    if (left[kind] < 0.0) continue;
    rest.add(left[kind], node.kind_masks[kind]);
    weight += left[kind];
  }
  return node.all_weight + tree_cost(rest, weight, 0.0);
}

/// Kinds as they are inside a part of a cut.
void CutChooser::look_inside(const Node& node, const std::vector<Word>& mask) const {
  const std::size_t kinds = node.kind_example.size();
  Scratch& s = *scratch_;
  s.covers.resize(kinds);
  s.inside.resize(kinds);
  s.masks.clear();
  s.open.clear();
  s.keys.restart(kinds);
  s.parted = mask;
  for (std::size_t w = 0; w < mask.size(); ++w) s.parted[w] |= units_.ranged[w];
  for (std::uint32_t kind = 0; kind < kinds; ++kind) {
    const std::uint32_t row = node.kind_example[kind];
    const Word* bits = node.rows.hull.mask[row];
    s.covers[kind] = covers_all(bits, mask) ? 1 : 0;
    s.inside[kind] =
        s.keys.number(kind_key(bits, s.parted, units_.kept_ports(node.rows.ports[row])));
    bool open = false;
    for (std::size_t w = 0; w < mask.size(); ++w) open = open || (bits[w] & ~mask[w]) != 0;
    if (s.inside[kind] < s.masks.size()) {
      if (open) s.open[s.inside[kind]] = 1;
      continue;
    }
    s.masks.push_back(node.kind_masks[kind]);
    s.open.push_back(open ? 1 : 0);
  }
}

/// Which rows go where: `part` by row, the shares in parts and in the rest; how many are copied.
std::size_t CutChooser::sort_rows(const Node& node, const std::vector<Word>& mask) const {
  Scratch& s = *scratch_;
  const std::size_t n = node.rows.size();
  s.keys.restart(n);
  s.part.assign(n, kNoRow);
  s.in_parts.clear();
  s.rest_weight.assign(node.kind_example.size(), -1.0);
  std::size_t copies = 0;
  for (std::size_t row = 0; row < n; ++row) {
    const std::uint32_t kind = node.kind[row];
    const auto before = node.conflicts.before(row);
    bool in = s.covers[kind] != 0 && node.conflicts.many[row] == 0;
    std::size_t copied = 0;
    if (in && !before.empty()) {
      const std::size_t most = most_copies(node, row);
      for (std::size_t i = 0; in && i < before.size(); ++i) {
        if (s.part[before[i]] != kNoRow) continue;
        in = ++copied <= most && node.conflicts.many[before[i]] == 0;
      }
    }
    if (!in) {
      double& rest = s.rest_weight[node.kind_class[kind]];
      rest = std::max(0.0, rest) + node.weight[row];
      continue;
    }
    const std::uint32_t part =
        s.keys.number(hash_under(node.rows.hull.value[row], mask.data(), mask.size()));
    s.part[row] = part;
    s.in_parts.push_back({part, {s.inside[kind], node.weight[row]}});
    if (copied == 0) continue;
    for (const std::uint32_t other : before) {
      if (s.part[other] == kNoRow) s.in_parts.push_back({part, {s.inside[node.kind[other]], 0.0}});
    }
    copies += copied;
  }
  return copies;
}

double CutChooser::cost_of(const Node& node, const std::vector<Word>& mask, double dearest) const {
  Scratch& s = *scratch_;
  look_inside(node, mask);
  const std::size_t copies = sort_rows(node, mask);
  const std::uint32_t parts = s.keys.count();
  if (parts == 0) return std::numeric_limits<double>::infinity();
  s.shares.clear();
  double rest_weight = 0.0;
  for (std::uint32_t kind = 0; kind < s.rest_weight.size(); ++kind) {
    if (s.rest_weight[kind] < 0.0) continue;  // no row
    s.shares.push_back({kind, s.rest_weight[kind]});
    rest_weight += s.rest_weight[kind];
  }
  const ChainCost rest = cost_in_order(s.shares, node.kind_masks);
  const double rest_cost = tree_cost(rest, rest_weight, 0.0);
  const double at_least = node.all_weight + rest_cost + static_cast<double>(copies) * entry_price_;
  if (at_least > dearest) return at_least;
  // Packets of the rest that pass through a part.
  s.passing.assign(parts, 0.0);
  for (const std::uint32_t packet : node.packets) {
    const std::uint32_t key = s.keys.lookup(hash_under(packets_[packet], mask.data(), mask.size()));
    if (key != kNoRow) s.passing[key] += packet_weight_[packet];
  }
  // By part.
  s.begin.assign(parts + 1, 0);
  for (const auto& entry : s.in_parts) ++s.begin[entry.first + 1];
  for (std::size_t i = 1; i < s.begin.size(); ++i) s.begin[i] += s.begin[i - 1];
  s.sorted.resize(s.in_parts.size());
  for (const auto& entry : s.in_parts) s.sorted[s.begin[entry.first]++] = entry.second;
  double cost = node.all_weight;
  double in_weight = 0.0;
  double entries = static_cast<double>(copies);
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    s.shares.assign(s.sorted.begin() + at, s.sorted.begin() + s.begin[i]);
    at = s.begin[i];
    double weight = 0.0;
    for (const Share& share : s.shares) weight += share.weight;
    in_weight += weight;
    const double through = std::max(0.0, s.passing[i] - weight);
    const std::uint32_t first = s.shares.front().kind;
    if (s.shares.size() == 1 && s.masks[first] == 1.0 && s.open[first] == 0) {
      continue;  // the cut itself decides
    }
    cost += tree_cost(chain_cost(s.shares, s.masks), weight, through);
    entries += 2.0;
    const double least = cost + rest_cost + entries * entry_price_;
    if (least > dearest) return least;
  }
  const double other = std::max(0.0, node.all_weight - in_weight);
  cost += rest_cost;
  cost += std::max(0.0, other - rest_weight) * tree_mean(rest.matchers);
  return cost + entries * entry_price_;
}

}  // namespace greynic::optimizer::chained
