#include "engine/lower_bound.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/engine_bits.h"

namespace greynic::testgen {
namespace {

using RowList = std::vector<const Value*>;

class Bounder {
 public:
  Bounder(const ValueIndex& index, const Words& wanted, std::size_t breadth)
      : index_(index), wanted_(wanted), breadth_(breadth) {}

  LowerBound bound(int strength, const std::vector<std::uint32_t>& parameters, const RowList& rows,
                   const RowList& already) const {
    if (strength == 1) return levels(parameters, rows, already);
    if (strength == 2) return pairs(parameters, rows, already);
    std::vector<std::uint32_t> order = parameters;
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return index_.level_count(a) > index_.level_count(b); });
    if (order.size() > breadth_) order.resize(breadth_);
    LowerBound best;
    for (const std::uint32_t p : order) {
      std::vector<std::uint32_t> others;
      for (const std::uint32_t q : parameters) {
        if (q != p) others.push_back(q);
      }
      std::size_t sum = 0;
      std::string inner;
      for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
        if (!test_bit(wanted_.data(), v)) continue;
        const LowerBound part =
            bound(strength - 1, others, having(rows, p, v), having(already, p, v));
        sum += part.rows;
        inner = part.reason;
      }
      if (sum > best.rows) {
        best = {sum,
                fmt::format("each level of parameter #{} needs rows of its own; for one of them "
                            "{}",
                            p, inner)};
      }
    }
    return best;
  }

 private:
  static RowList having(const RowList& rows, std::uint32_t p, Value v) {
    RowList out;
    for (const Value* row : rows) {
      if (row[p] == v) out.push_back(row);
    }
    return out;
  }

  LowerBound levels(const std::vector<std::uint32_t>& parameters, const RowList& rows,
                    const RowList& already) const {
    Words seen(index_.words(), 0);
    for (const Value* row : rows) {
      for (const std::uint32_t p : parameters) set_bit(seen.data(), row[p]);
    }
    for (const Value* row : already) {
      for (const std::uint32_t p : parameters) clear_bit(seen.data(), row[p]);
    }
    return most_levels(parameters, seen.data());
  }

  /// The parameter with most levels in the set.
  LowerBound most_levels(const std::vector<std::uint32_t>& parameters, const Word* set) const {
    LowerBound best;
    std::uint32_t pick = 0;
    for (const std::uint32_t p : parameters) {
      std::size_t count = 0;
      for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
        count += test_bit(set, v) && test_bit(wanted_.data(), v) ? 1 : 0;
      }
      if (count > best.rows) {
        best.rows = count;
        pick = p;
      }
    }
    best.reason = fmt::format("parameter #{} has {} levels", pick, best.rows);
    return best;
  }

  LowerBound pairs(const std::vector<std::uint32_t>& parameters, const RowList& rows,
                   const RowList& already) const {
    const std::size_t words = index_.words();
    Words mask(words, 0);
    for (const std::uint32_t p : parameters) {
      for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
        if (test_bit(wanted_.data(), v)) set_bit(mask.data(), v);
      }
    }
    Words with(index_.values() * words, 0);  // values in the rows that have this one
    Words set(words, 0);
    const auto fold = [&](const Value* row, bool in) {
      std::fill(set.begin(), set.end(), 0);
      for (const std::uint32_t p : parameters) set_bit(set.data(), row[p]);
      for (const std::uint32_t p : parameters) {
        Word* mine = &with[row[p] * words];
        for (std::size_t w = 0; w < words; ++w) {
          if (in) {
            mine[w] |= set[w] & mask[w];
          } else {
            mine[w] &= ~set[w];
          }
        }
      }
    };
    for (const Value* row : rows) fold(row, true);
    for (const Value* row : already) fold(row, false);
    LowerBound best;
    for (const std::uint32_t p : parameters) {
      std::size_t sum = 0;
      for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
        if (!test_bit(mask.data(), v)) continue;
        std::size_t most = 0;
        for (const std::uint32_t q : parameters) {
          if (q == p) continue;
          std::size_t count = 0;
          for (Value w = index_.first(q); w < index_.first(q) + index_.level_count(q); ++w) {
            count += test_bit(&with[v * words], w) ? 1 : 0;
          }
          most = std::max(most, count);
        }
        sum += most;
      }
      if (sum > best.rows) {
        best = {sum, fmt::format("the levels of parameter #{} form {} pairs that need a row each",
                                 p, sum)};
      }
    }
    improve_by_uniform(parameters, with, best);
    return best;
  }

  /// Parameters of v levels that pair all of them with one another, gathered greedily.
  void improve_by_uniform(const std::vector<std::uint32_t>& parameters, const Words& with,
                          LowerBound& best) const {
    const std::size_t words = index_.words();
    std::vector<std::uint32_t> counts;
    for (const std::uint32_t p : parameters) counts.push_back(index_.level_count(p));
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (const std::uint32_t v : counts) {
      if (v < 2) continue;
      std::vector<std::uint32_t> clique;
      for (const std::uint32_t p : parameters) {
        if (index_.level_count(p) != v) continue;
        bool all = true;
        for (const std::uint32_t q : clique) {
          for (Value a = index_.first(p); a < index_.first(p) + v && all; ++a) {
            for (Value b = index_.first(q); b < index_.first(q) + v && all; ++b) {
              all = test_bit(&with[a * words], b);
            }
          }
          if (!all) break;
        }
        if (all) clique.push_back(p);
      }
      if (clique.size() < 2) continue;
      if (v == 2 && binary_pairs_rows(clique.size()) > best.rows) {
        best = {binary_pairs_rows(clique.size()),
                fmt::format("{} two-level parameters take all pairs (Kleitman-Spencer, Katona)",
                            clique.size())};
      } else if (clique.size() > v + 1 && std::size_t{v} * v + 1 > best.rows) {
        best = {
            std::size_t{v} * v + 1,
            fmt::format("{} parameters of {} levels take all pairs, and {} rows serve at most {} "
                        "(Bush)",
                        clique.size(), v, v * v, v + 1)};
      }
    }
  }

  const ValueIndex& index_;
  const Words& wanted_;
  std::size_t breadth_;
};

}  // namespace

std::size_t binary_pairs_rows(std::size_t n) {
  if (n < 2) return n == 0 ? 0 : 2;
  for (std::size_t rows = 4;; ++rows) {
    // C(rows - 1, floor(rows / 2) - 1)
    double choose = 1;
    for (std::size_t i = 1; i < rows / 2; ++i) {
      choose *= static_cast<double>(rows - i) / static_cast<double>(i);
    }
    if (choose + 0.5 >= static_cast<double>(n)) return rows;
  }
}

LowerBound lower_bound(const ValueIndex& index, const Layer& layer, const Words& wanted,
                       const std::vector<std::vector<Value>>& rows,
                       const std::vector<std::vector<Value>>& already, std::size_t breadth) {
  RowList all;
  RowList before;
  for (const auto& row : rows) all.push_back(row.data());
  for (const auto& row : already) before.push_back(row.data());
  return Bounder(index, wanted, breadth).bound(layer.strength, layer.parameters, all, before);
}

}  // namespace greynic::testgen
