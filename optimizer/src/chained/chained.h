#pragma once

/// One input table as layout tables: grown within a number of rules, and written as rules.

#include "src/problem.h"

namespace greynic::optimizer::chained {

struct TableOptions {
  std::uint32_t table = 0;       ///< id of the input table, which the first layout table keeps
  std::uint32_t first_free = 0;  ///< ids from here on are free for added tables
  std::size_t most_rules = 0;    ///< jumps included
  std::size_t most_tables = 0;   ///< that may be added
  bool filters = true;           ///< may be put in
};

/// The layout tables, the input table's first. `packets` are packed with the problem's columns,
/// their weights sum to 1 or less. Rows of the problem must not shadow each other.
[[nodiscard]] std::vector<LayoutTable> lay_out(const RuleSet& rules, const Problem& problem,
                                               const Rows& packets,
                                               const std::vector<double>& packet_weight,
                                               const TableOptions& options);

}  // namespace greynic::optimizer::chained
