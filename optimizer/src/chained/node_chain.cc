#include "src/chained/node_chain.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "src/key_table.h"

namespace greynic::optimizer::chained {

bool end_at_last_word(Node& node) {
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    if (!node.rows.takes_all(row)) continue;
    if (row + 1 == node.rows.size()) return true;
    UnitRows kept(node.rows.hull.words());
    for (std::size_t i = 0; i <= row; ++i) {
      kept.add(node.rows.hull.value[i], node.rows.hull.mask[i], node.rows.ports[i],
               node.rows.unit[i]);
    }
    node.rows = std::move(kept);
    node.conflicts.cut_off(row + 1);
    return true;
  }
  return false;
}

namespace {

/// Conflicts of units as pairs of the rows that were written out: those of row i end at end[i].
std::optional<std::vector<RowPair>> order_of(const Node& node, const Problem& rows,
                                             const std::vector<std::uint32_t>& end) {
  constexpr std::size_t kMost = 1'000'000;  // to hold, and to compare
  const Conflicts& conflicts = node.conflicts;
  if (conflicts.rows() != node.rows.size()) return std::nullopt;
  if (std::ranges::any_of(conflicts.some, [](std::uint8_t some) { return some != 0; })) {
    return std::nullopt;
  }
  const auto begin_of = [&](std::size_t row) { return row == 0 ? 0 : end[row - 1]; };
  const Ternaries& t = rows.rows;
  std::vector<RowPair> pairs;
  std::size_t compared = 0;
  for (std::size_t row = 0; row < end.size(); ++row) {
    for (const std::uint32_t other : conflicts.before(row)) {
      compared += std::size_t{end[row] - begin_of(row)} * (end[other] - begin_of(other));
      if (compared > kMost) return std::nullopt;
      for (std::uint32_t first = begin_of(other); first < end[other]; ++first) {
        for (std::uint32_t second = begin_of(row); second < end[row]; ++second) {
          if (overlap(t.value[first], t.mask[first], t.value[second], t.mask[second], t.words())) {
            pairs.push_back({first, second});
          }
        }
      }
    }
  }
  return pairs;
}

}  // namespace

WrittenOut written_out(const Units& units, const Node& node) {
  Problem chain(units.problem->columns, node.decided.size());
  const std::size_t words = node.decided.size();
  constexpr std::size_t kFew = 16;  // are looked through
  constexpr PortIds kNoSets{};
  const bool few =
      node.rows.size() <= kFew &&
      std::ranges::all_of(node.rows.ports, [&](const PortIds& ids) { return ids == kNoSets; });
  chain.rows.reserve(node.rows.size());
  chain.effect.reserve(node.rows.size());
  chain.rule.reserve(node.rows.size());
  chain.weight.reserve(node.rows.size());
  std::unordered_set<std::vector<Word>, RowHash> known;
  std::vector<Word> key;
  const auto is_new = [&](const Word* value, const Word* mask) {
    if (few) {
      for (std::size_t row = 0; row < chain.rows.size(); ++row) {
        if (std::equal(value, value + words, chain.rows.value[row]) &&
            std::equal(mask, mask + words, chain.rows.mask[row])) {
          return false;
        }
      }
      return true;
    }
    key.assign(value, value + words);
    key.insert(key.end(), mask, mask + words);
    return known.insert(key).second;
  };
  std::vector<std::uint32_t> end;
  end.reserve(node.rows.size());
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    const std::size_t before = chain.rows.size();
    units.written_out(node.rows, row, [&](const Word* value, const Word* mask) {
      if (is_new(value, mask)) chain.rows.add(value, mask);
    });
    const std::size_t count = chain.rows.size() - before;
    const std::uint32_t unit = node.rows.unit[row];
    chain.effect.insert(chain.effect.end(), count, units.effect[unit]);
    chain.rule.insert(chain.rule.end(), count, unit);
    chain.weight.insert(chain.weight.end(), count, node.weight[row] / static_cast<double>(count));
    end.push_back(static_cast<std::uint32_t>(chain.rows.size()));
  }
  auto order = order_of(node, chain, end);
  return {std::move(chain), std::move(order)};
}

Chain chain_of(const WrittenOut& written, circles::Care care) {
  std::vector<std::uint32_t> all(written.rows.rows.size());
  std::iota(all.begin(), all.end(), 0U);
  return build_chain(written.rows, all, care, written.order ? &*written.order : nullptr);
}

double cost_as_made(const Units& units, const Node& node, double hoped, double missing) {
  constexpr std::size_t kSmall = 3000;
  if (units.as_range[0] || units.as_range[1] || node.conflicts.listed.empty() ||
      node.rows.size() > kSmall)
    return hoped;
  const Chain made = chain_of(written_out(units, node));
  return std::max(hoped,
                  weighted_position(made) + missing * static_cast<double>(made.groups.size()));
}

}  // namespace greynic::optimizer::chained
