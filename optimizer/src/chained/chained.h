#pragma once

/// One input table as layout tables: grown within a number of rules, and written as rules.

#include <memory>

#include "greynic/core/layout_limits.h"
#include "src/chained/plan_search.h"
#include "src/chained/units.h"
#include "src/problem.h"
#include "src/spend/uniting.h"

namespace greynic::optimizer::chained {

struct TableOptions {
  std::uint32_t table = 0;       ///< id of the input table, which the first layout table keeps
  std::uint32_t first_free = 0;  ///< ids from here on are free for added tables
  std::size_t most_rules = 0;    ///< jumps included
  std::size_t most_tables = 0;   ///< that may be added
  bool chains_as_made = false;   ///< chains are priced with what waits in them
  spend::Uniting uniting = spend::Uniting::kAny;
  bool filters = true;  ///< may be put in
  /// Rules that must come before another, as far as they are listed: a rule with more stays in rests.
  std::size_t most_conflicts = 100;
  double least_price = 0.0;              ///< of an entry: at lower ones no plan fits
  const LayoutLimits* limits = nullptr;  ///< of the device; null: none
};

struct LaidOut {
  std::vector<LayoutTable> tables;  ///< the input table's first
  std::vector<LayoutTable>
      other;  ///< with filters where the first has none, or without; may be empty
  std::vector<LayoutTable> ranges;  ///< the first of masks, with ranges; may be empty
  double price = 0.0;               ///< of an entry, the first at which either fitted
};

class TableSearch;

/// One search for the table's plans: the first that fit, and, where more is asked for, better ones.
class TableAttempt {
 public:
  TableAttempt(TableSearch& search, const TableOptions& options,
               std::unique_ptr<Conflicts> conflicts, PlanSearch plans);

  void improve() { plans_.improve(); }
  void refine() { plans_.refine(); }
  [[nodiscard]] LaidOut lay_out();

 private:
  TableSearch* search_;
  TableOptions options_;
  std::unique_ptr<Conflicts> conflicts_;  ///< of which the plans know the address
  PlanSearch plans_;
};

/// What all layouts of one input table have in common, found once.
class TableSearch {
 public:
  /// `packets` are packed with the problem's columns, their weights sum to 1 or less; `decider` is
  /// the row of each. Rows of the problem must not shadow each other. All must outlive the search.
  /// `most_ranges`, `codes`: see Units.
  TableSearch(const RuleSet& rules, const Problem& problem, const Rows& packets,
              const std::vector<double>& packet_weight, std::vector<std::uint32_t> decider,
              std::size_t most_ranges = 0, bool codes = true);

  /// Some port field is compared as a range.
  [[nodiscard]] bool has_ranges() const { return units_.as_range[0] || units_.as_range[1]; }
  /// Must not outlive the search.
  [[nodiscard]] TableAttempt attempt(const TableOptions& options);
  /// An attempt, improved and refined.
  [[nodiscard]] LaidOut lay_out(const TableOptions& options);

 private:
  friend class TableAttempt;
  const RuleSet& rules_;
  const std::vector<double>& packet_weight_;
  Units units_;
  Rows packets_;
  std::vector<std::uint32_t> decider_;  ///< units by packet
};

}  // namespace greynic::optimizer::chained
