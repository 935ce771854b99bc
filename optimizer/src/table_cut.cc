#include "table_cut.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "key_table.h"

namespace greynic::optimizer {
namespace {

/// Weight x position for weights sorted down, and all positions for what misses.
double sorted_cost(std::vector<double>& weights, double missing) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  double cost = missing * static_cast<double>(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) cost += weights[i] * static_cast<double>(i + 1);
  return cost;
}

bool covers_mask(const Word* wide, const std::vector<Word>& mask) {
  for (std::size_t w = 0; w < mask.size(); ++w) {
    if ((mask[w] & ~wide[w]) != 0) return false;
  }
  return true;
}

/// Number of the mask of each row when the bits of `cut` no longer count.
std::vector<std::uint32_t> mask_numbers(const Problem& problem, const std::vector<Word>& cut) {
  ByMask<std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(problem.rows.size());
  for (std::uint32_t row = 0; row < problem.rows.size(); ++row) {
    std::vector<Word> mask = mask_of(problem.rows, row);
    for (std::size_t w = 0; w < mask.size(); ++w) mask[w] &= ~cut[w];
    numbers.push_back(
        known.try_emplace(std::move(mask), static_cast<std::uint32_t>(known.size())).first->second);
  }
  return numbers;
}

/// What falls on one mask of one part.
struct Share {
  std::uint32_t part;
  std::uint32_t mask;
  double weight;
};

/// Sum over the parts of the hoped cost, from shares in any order.
double cost_of_parts(std::vector<Share>& shares, const std::vector<double>& missing) {
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.part != b.part ? a.part < b.part : a.mask < b.mask;
  });
  double cost = 0.0;
  std::vector<double> weights;
  for (std::size_t i = 0; i < shares.size();) {
    const std::uint32_t part = shares[i].part;
    weights.clear();
    while (i < shares.size() && shares[i].part == part) {
      const std::uint32_t mask = shares[i].mask;
      weights.push_back(0.0);
      for (; i < shares.size() && shares[i].part == part && shares[i].mask == mask; ++i) {
        weights.back() += shares[i].weight;
      }
    }
    cost += sorted_cost(weights, missing[part]);
  }
  return cost;
}

/// Costs a cut: hoped cost of parts and rest, and one matcher more for every packet.
class CutCost {
 public:
  CutCost(const Problem& problem, const Rows& packets, const std::vector<double>& packet_weight,
          const Deciders& deciders, std::size_t most_parts)
      : problem_(problem),
        packets_(packets),
        weight_(packet_weight),
        deciders_(deciders),
        most_parts_(most_parts) {}

  /// An empty mask in the answer: more than `most_entries` would come out, or too many parts.
  [[nodiscard]] Cut of(const std::vector<Word>& mask, std::size_t most_entries) const {
    const Parts parts = split_rows(problem_, mask, most_entries);
    if (parts.rows.empty() || parts.rows.size() > most_parts_) return {};
    const auto numbers = mask_numbers(problem_, mask);
    const auto rest = static_cast<std::uint32_t>(parts.rows.size());
    Cut cut{mask, 0.0, parts.rest.size()};
    std::vector<Share> shares;
    for (std::uint32_t part = 0; part < rest; ++part) {
      cut.entries += parts.rows[part].size() + (parts.rows[part].size() > 1 ? 1 : 0);
      for (const std::uint32_t row : parts.rows[part]) shares.push_back({part, numbers[row], 0.0});
    }
    for (const std::uint32_t row : parts.rest) shares.push_back({rest, numbers[row], 0.0});
    std::vector<double> missing(parts.rows.size() + 1, 0.0);
    const auto part_of_packet = split_packets(problem_, mask, parts, packets_, deciders_);
    for (std::size_t i = 0; i < deciders_.packets.size(); ++i) {
      const std::uint32_t part = part_of_packet[i] == kNoRow ? rest : part_of_packet[i];
      const double weight = weight_[deciders_.packets[i]];
      cut.cost += weight;
      if (deciders_.row[i] == kNoRow) {
        missing[part] += weight;
      } else if (part == rest || parts.rows[part].size() > 1) {
        shares.push_back({part, numbers[deciders_.row[i]], weight});
      }
    }
    // A part of one rule that looks at nothing else is decided by the cut itself.
    cut.cost += cost_of_parts(shares, missing);
    return cut;
  }

 private:
  const Problem& problem_;
  const Rows& packets_;
  const std::vector<double>& weight_;
  const Deciders& deciders_;
  std::size_t most_parts_;
};

/// Masks of single fields, with the headers they need, that a share of the rules covers: for each
/// field the distinct masks its rules have, coarse ones first, thinned out to `most`.
std::vector<std::vector<Word>> field_masks(const Problem& problem, std::size_t most) {
  const std::size_t words = problem.rows.words();
  std::vector<std::vector<Word>> result;
  std::map<MatchField, std::set<std::pair<U128, Mask>>> seen;
  ByMask<bool> known;
  for (std::uint32_t row = 0; row < problem.rows.size(); ++row) {
    if (!known.try_emplace(mask_of(problem.rows, row), true).second) continue;
    const Mask mask = problem.columns.unpack_mask(problem.rows.mask[row]);
    for (const FieldMask& entry : mask.fields()) {
      Mask with_headers;
      with_headers.add(entry.field, entry.bits);
      add_headers(with_headers, entry.field, mask);
      seen[entry.field].emplace(entry.bits, std::move(with_headers));
    }
  }
  for (const auto& [field, masks] : seen) {
    const std::size_t step = (masks.size() + most - 1) / most;
    std::size_t i = 0;
    for (const auto& [bits, whole] : masks) {
      if (i++ % step != step / 2) continue;
      Match match;
      for (const FieldMask& part : whole.fields()) match.set(part.field, 0, part.bits);
      std::vector<Word> value(words, 0);
      std::vector<Word> mask(words, 0);
      problem.columns.pack(match, value.data(), mask.data());
      result.push_back(std::move(mask));
    }
  }
  return result;
}

}  // namespace

namespace {

/// Calls visit(header) for each that some alternative of what the field needs names.
template <typename Visit>
void visit_headers(MatchField field, Visit visit) {
  std::string_view rest = info(field).needs;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    const auto header = match_field_named(rest.substr(0, rest.find('=')));
    if (header) visit(*header);
    if (bar == std::string_view::npos) return;
    rest.remove_prefix(bar + 1);
  }
}

}  // namespace

bool needs_header(MatchField field, MatchField header) {
  bool needs = false;
  visit_headers(field, [&](MatchField other) { needs = needs || other == header; });
  return needs;
}

void add_headers(Mask& mask, MatchField field, const Mask& of_row) {
  visit_headers(field, [&](MatchField header) {
    if (mask.bits(header) != 0 || of_row.bits(header) == 0) return;
    mask.add(header, of_row.bits(header));
    add_headers(mask, header, of_row);
  });
}

double hoped_cost(const Problem& problem, double missing_weight) {
  std::vector<std::uint32_t> rows(problem.rows.size());
  std::iota(rows.begin(), rows.end(), 0U);
  std::vector<double> weights;
  for (const Group& group : groups_by_mask(problem, rows)) weights.push_back(group.weight);
  return sorted_cost(weights, missing_weight);
}

Parts split_rows(const Problem& problem, const std::vector<Word>& mask, std::size_t most_entries) {
  const Ternaries& t = problem.rows;
  Parts parts;
  std::unordered_map<std::uint64_t, std::uint32_t> part_of;
  for (std::uint32_t row = 0; row < t.size(); ++row) {
    if (!covers_mask(t.mask[row], mask)) {
      parts.rest.push_back(row);
      continue;
    }
    const std::uint64_t key = hash_under(t.value[row], mask.data(), t.words());
    const auto [place, fresh] =
        part_of.try_emplace(key, static_cast<std::uint32_t>(parts.rows.size()));
    if (fresh) {
      parts.rows.emplace_back();
      parts.example.push_back(row);
    }
    parts.rows[place->second].push_back(row);
  }
  std::size_t entries = t.size() + parts.rows.size();

  // Rules of the rest meet a part when they agree on the bits that both look at.
  ByMask<std::vector<std::uint32_t>> rest_by_mask;
  for (const std::uint32_t row : parts.rest) rest_by_mask[mask_of(t, row)].push_back(row);
  ByMask<std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>> parts_by_bits;
  for (const auto& [rest_mask, rows] : rest_by_mask) {
    const std::vector<Word> bits = common(rest_mask, mask);
    auto& parts_at = parts_by_bits[bits];
    if (parts_at.empty()) {
      for (std::uint32_t part = 0; part < parts.rows.size(); ++part) {
        parts_at[hash_under(t.value[parts.example[part]], bits.data(), t.words())].push_back(part);
      }
    }
    for (const std::uint32_t row : rows) {
      const auto met = parts_at.find(hash_under(t.value[row], bits.data(), t.words()));
      if (met == parts_at.end()) continue;
      entries += met->second.size();
      if (entries > most_entries) return {};
      for (const std::uint32_t part : met->second) parts.rows[part].push_back(row);
    }
  }
  if (entries > most_entries) return {};
  for (auto& rows : parts.rows) std::sort(rows.begin(), rows.end());
  return parts;
}

std::vector<std::uint32_t> split_packets(const Problem& problem, const std::vector<Word>& mask,
                                         const Parts& parts, const Rows& packets,
                                         const Deciders& deciders) {
  const std::size_t words = problem.rows.words();
  std::unordered_map<std::uint64_t, std::uint32_t> part_of;
  for (std::uint32_t part = 0; part < parts.example.size(); ++part) {
    part_of[hash_under(problem.rows.value[parts.example[part]], mask.data(), words)] = part;
  }
  std::vector<std::uint32_t> result;
  result.reserve(deciders.packets.size());
  for (const std::uint32_t packet : deciders.packets) {
    const auto found = part_of.find(hash_under(packets[packet], mask.data(), words));
    result.push_back(found == part_of.end() ? kNoRow : found->second);
  }
  return result;
}

Cut best_cut(const Problem& problem, const Rows& packets, const std::vector<double>& packet_weight,
             const Deciders& deciders, double price, std::size_t most_entries,
             std::size_t most_parts) {
  // Large tables are costly to split on trial, and have more to gain from any sensible cut.
  const bool large = problem.rows.size() > 20'000;
  const CutCost cost(problem, packets, packet_weight, deciders, most_parts);
  const auto candidates = field_masks(problem, large ? 5 : 10);
  const auto value = [&](const Cut& cut) {
    const auto added = static_cast<double>(cut.entries) - static_cast<double>(problem.rows.size());
    return cut.cost + price * std::max(0.0, added);
  };
  std::vector<Cut> found;
  const auto try_mask = [&](const std::vector<Word>& mask) {
    Cut cut = cost.of(mask, most_entries);
    if (!cut.mask.empty()) found.push_back(std::move(cut));
  };
  for (const auto& mask : candidates) try_mask(mask);
  const auto better = [&](const Cut& a, const Cut& b) { return value(a) < value(b); };
  std::sort(found.begin(), found.end(), better);
  // The best cuts by one field are tried with a second one.
  const std::size_t seeds = std::min<std::size_t>(found.size(), large ? 1 : 3);
  const std::vector<Cut> first(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(seeds));
  for (const Cut& seed : first) {
    for (const auto& extra : candidates) {
      std::vector<Word> mask = seed.mask;
      for (std::size_t w = 0; w < mask.size(); ++w) mask[w] |= extra[w];
      if (mask != seed.mask && mask != extra) try_mask(mask);
    }
  }
  const auto best = std::min_element(found.begin(), found.end(), better);
  return best == found.end() ? Cut{} : *best;
}

}  // namespace greynic::optimizer
