#pragma once

/// Makes an array smaller: takes a row away and mends what that opened by changing other rows, cell
/// by cell, until nothing is open again. Tabu on the cells just changed; a row whose constraints do
/// not let a single cell change is bent to the tuple through the propagator instead.
///
/// How often a tuple occurs is not stored: each value knows the set of rows that hold it, and the
/// rows with a tuple are the intersection. Stored are, for each cell, the tuples that no other row
/// holds (its loss), and the open tuples.

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine_bits.h"
#include "engine/engine_values.h"
#include "engine/row_rules.h"
#include "engine/seeded_random.h"
#include "validity/validity.h"

namespace greynic::testgen {

/// Tuples of `strength` values of these parameters are to be covered.
struct Layer {
  int strength = 2;
  std::vector<std::uint32_t> parameters;
};

class LocalSearch {
 public:
  /// `wanted`: values that take part in tuples. `rows` cover all that is to be covered; the first
  /// `frozen` of them never change.
  LocalSearch(const ValueIndex& index, const std::vector<Layer>& layers, const Words& wanted,
              const RowRules& rules, Validity& validity, std::vector<std::vector<Value>> rows,
              std::size_t frozen, std::uint64_t seed);

  /// From now on the array's total cost counts before its number of rows: `cost` of each value of
  /// the index, at least 0. A search that stands above the best array's cost makes no move that
  /// keeps it there. Before run().
  void weigh(std::vector<double> cost);

  /// Runs until `stop` says so (asked every few steps), or the array has `enough` rows.
  void run(std::size_t enough, const std::function<bool()>& stop);

  /// Gives every cell whose level covers nothing alone the level that `better(w, v)` ranks first,
  /// among those that constraints allow. The array stays full; this is for a search that has not
  /// run.
  void settle(const std::function<bool(Value w, Value v)>& better);

  /// Makes the array cheaper: gives a cell a cheaper level, mends what that opened without spending
  /// it again, and goes back where that fails. After weigh(); until `stop` says so.
  void economise(const std::function<bool()>& stop);

  /// The smallest, or cheapest, full array so far.
  [[nodiscard]] const std::vector<std::vector<Value>>& best() const { return best_; }
  /// How often a better array was found.
  [[nodiscard]] std::uint64_t improvements() const { return improvements_; }
  [[nodiscard]] std::uint64_t steps() const { return step_; }
  /// Work done, in units of one tuple looked at: what a deterministic budget counts.
  [[nodiscard]] std::uint64_t work() const { return work_; }

 private:
  struct Open {
    std::uint32_t size = 0;
    std::array<Value, 6> values{};
  };
  /// Rows that hold a tuple are only told apart as none, one, or more.
  struct Holders {
    int count = 0;
    std::uint32_t first = 0;
  };
  struct Move {
    std::uint32_t row = 0;
    Value value = 0;
    std::int64_t delta = 0;
    std::uint64_t age = 0;
    bool found = false;
    std::uint32_t refused = 0;  ///< changes looked at that constraints forbid
  };

  [[nodiscard]] Word* rows_with(Value v) { return &rows_with_[v * row_words_]; }
  void put_in(std::uint32_t row, Value v);
  void take_out(std::uint32_t row, Value v);
  void change(std::uint32_t row, std::span<const Value> values);
  void count_losses(std::size_t layer);
  void add_open(Value v, std::span<const Value> partners);
  void drop_open(Value v, std::span<const Value> partners);
  [[nodiscard]] std::int64_t gain(std::uint32_t row, Value v) const;
  /// The search spends a fifth of its time here; where the files of a room are compiled together,
  /// the compiler no longer takes it into its callers by itself.
  [[gnu::always_inline]] [[nodiscard]] static inline Holders holders(const Word* a, const Word* b,
                                                                     std::size_t words) {
    Holders h;
    for (std::size_t i = 0; i < words; ++i) {
      const Word both = a[i] & b[i];
      if (both == 0) continue;
      if (h.count == 0)
        h.first =
            static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(both));
      h.count += (both & (both - 1)) != 0 ? 2 : 1;
      if (h.count > 1) return h;
    }
    return h;
  }
  template <typename Visit>
  void for_each_scarce(std::uint32_t row, Value v, Visit&& visit);
  template <typename Visit>
  void for_each_scarce_triple(std::uint32_t row, Value v, std::size_t layer, Visit&& visit);
  void remove_row();
  [[nodiscard]] double cost_of(Value v) const { return v < cost_.size() ? cost_[v] : 0.0; }
  [[nodiscard]] bool affordable(double more) const;
  void keep_if_better();
  void return_to_best();
  void step();
  [[nodiscard]] Move best_cell_move();
  [[nodiscard]] std::int64_t delta_of(std::uint32_t row, const std::vector<Value>& values);
  bool bend_row(std::int64_t least);

  const ValueIndex& index_;
  const std::vector<Layer>& layers_;
  Words wanted_;  ///< with room for one more value: the level of a cell that is being removed
  const RowRules& rules_;
  Validity& validity_;
  SeededRandom random_;
  std::uint32_t parameters_;
  std::uint32_t count_;  ///< rows now
  std::uint32_t frozen_;
  std::size_t words_;      ///< of a set of values
  std::size_t row_words_;  ///< of a set of rows
  std::vector<std::vector<Value>> rows_;
  std::vector<std::vector<Value>> best_;
  Words rows_with_;
  Words row_bits_;                  ///< values of each row
  Words members_;                   ///< values that take part in each layer
  std::vector<std::int32_t> loss_;  ///< of each cell
  std::vector<std::uint64_t> tabu_until_;
  std::vector<std::uint64_t> changed_at_;
  std::vector<Open> open_;
  std::vector<std::vector<std::uint32_t>> open_with_;  ///< slots of open_, of each value
  std::vector<std::vector<char>> in_layer_;
  std::vector<double> cost_;  ///< of each value; empty: rows alone count
  double total_ = 0.0;        ///< of the rows now
  double best_total_ = 0.0;
  std::uint64_t improvements_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t work_ = 0;
  Words scratch_;
  struct WordSpan {
    std::uint16_t first = 0;
    std::uint16_t end = 0;
  };
  std::vector<WordSpan> span_;  ///< of each parameter's words in once_ and twice_: what matters
  Words own_;
  Words scarce_;
  Words shared_;
  Words once_;
  Words twice_;
};

}  // namespace greynic::testgen
