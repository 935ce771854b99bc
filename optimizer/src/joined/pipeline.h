#pragma once

/// The tables of a pipeline as rows of bits, and what packets that were treated so far may meet in the next one.

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "src/problem.h"

namespace greynic::optimizer::joined {

/// The table that a rule jumps to as its last action; -1: none, or not only there.
[[nodiscard]] std::int64_t table_behind(const std::vector<Action>& actions);

/// Packets that agree in the bits of a mask.
struct Cube {
  std::vector<Word> value;
  std::vector<Word> mask;
  auto operator<=>(const Cube&) const = default;
};

/// What is known of packets of `cube` that are in `common`, too.
[[nodiscard]] Cube both(Cube cube, const Cube& common);

/// Actions that end with a jump, and those of a rule where it leads. A lone drop does nothing.
[[nodiscard]] std::vector<Action> followed_by(std::vector<Action> actions,
                                              const std::vector<Action>& then);

class Pipeline {
 public:
  /// `rules` must outlive it.
  explicit Pipeline(const RuleSet& rules);

  [[nodiscard]] const RuleSet& rules() const { return rules_; }
  [[nodiscard]] const RulesOfTable& tables() const { return tables_; }
  [[nodiscard]] std::uint32_t size(std::uint32_t table) const {
    return static_cast<std::uint32_t>(tables_.at(table).size());
  }
  [[nodiscard]] const Ternaries& rows(std::uint32_t table) const { return rows_.at(table); }
  [[nodiscard]] const FlowRule& rule(std::uint32_t table, std::uint32_t row) const {
    return rules_.rules[tables_.at(table)[row]];
  }
  [[nodiscard]] const Columns& columns() const { return columns_; }
  [[nodiscard]] std::size_t words() const { return words_; }
  /// All packets.
  [[nodiscard]] Cube any() const {
    return {std::vector<Word>(words_, 0), std::vector<Word>(words_, 0)};
  }
  [[nodiscard]] Cube cube(std::uint32_t table, std::uint32_t row) const {
    const Ternaries& all = rows_.at(table);
    return {{all.value[row], all.value[row] + words_}, {all.mask[row], all.mask[row] + words_}};
  }

  /// Each table before those that it leads to; none where jumps may lead in a circle.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> order() const;

  /// To tables from `first_added` on packets come by rules' jumps, and nothing else is done on the way: what all
  /// that come to such a table have in common. `order` as above.
  [[nodiscard]] std::map<std::uint32_t, Cube> common_of_added(
      const std::vector<std::uint32_t>& order, std::uint32_t first_added) const;

  /// Tables from `first_added` on that some packets of some table miss, there or where they lead: for those this is a miss
  /// in the table of the set that they were looked up in, so that no other may pass that by.
  [[nodiscard]] std::set<std::uint32_t> added_with_misses(const std::vector<std::uint32_t>& order,
                                                          std::uint32_t first_added) const;

  /// Bits that the actions set.
  [[nodiscard]] Cube written(const std::vector<Action>& actions) const;

  /// The table of at most `most_rules` that can be looked into behind these actions.
  [[nodiscard]] std::optional<std::uint32_t> next(const std::vector<Action>& actions,
                                                  std::size_t most_rules) const;

  /// Calls visit(row, value, mask) for each row of a table that packets in `cube` may hit after actions that set
  /// `set`, with what these packets have in common beyond; the last is kNoRow where some may miss. `held`: known of
  /// them besides, not to be asked again.
  template <typename Visit>
  void for_each_behind(std::uint32_t table, const Cube& cube, const Cube& held, const Cube& set,
                       const Visit& visit) const {
    std::vector<std::uint32_t> all(size(table));
    std::iota(all.begin(), all.end(), std::uint32_t{0});
    for_each_behind(table, all, cube, held, set, visit);
  }
  /// The same, of some of the rows.
  template <typename Some, typename Visit>
  void for_each_behind(std::uint32_t table, const Some& some, const Cube& cube, const Cube& held,
                       const Cube& set, const Visit& visit) const {
    const Ternaries& rows = rows_.at(table);
    std::vector<Word> value(words_);
    std::vector<Word> mask(words_);
    for (const std::uint32_t row : some) {
      const Word* const v = rows.value[row];
      const Word* const m = rows.mask[row];
      bool meets = true;
      for (std::size_t w = 0; w < words_ && meets; ++w) {
        const Word asked = m[w] & ~set.mask[w];
        meets = ((v[w] ^ set.value[w]) & m[w] & set.mask[w]) == 0 &&
                ((v[w] ^ held.value[w]) & asked & held.mask[w]) == 0;
      }
      if (!meets) continue;
      bool all = true;
      for (std::size_t w = 0; w < words_; ++w) {
        const Word more = m[w] & ~set.mask[w] & ~held.mask[w];
        all = all && more == 0;
        value[w] = cube.value[w] | (v[w] & more);
        mask[w] = cube.mask[w] | more;
      }
      visit(row, value, mask);
      if (all) return;
    }
    visit(kNoRow, cube.value, cube.mask);
  }

 private:
  const RuleSet& rules_;
  RulesOfTable tables_;
  Columns columns_;
  std::size_t words_;
  std::map<std::uint32_t, Ternaries> rows_;
};

}  // namespace greynic::optimizer::joined
