#pragma once

/// One input table as a tree of layout tables: cut where cutting gains most for the rules it adds,
/// chains of matchers at the leaves.

#include "problem.h"

namespace greynic::optimizer {

struct TreeOptions {
  std::uint32_t table = 0;       ///< id of the input table, which the root keeps
  std::uint32_t first_free = 0;  ///< ids from here on are free for added tables
  std::size_t most_rules = 0;    ///< jumps included; no cut is made that needs more
  std::size_t most_tables = 0;   ///< that cuts may add
  bool single_table = false;     ///< no cuts
};

struct Tree {
  std::vector<LayoutTable> tables;  ///< root first
  std::size_t least_matchers = 0;  ///< a single chain of these rows has no fewer; 0: there are cuts
};

/// The layout tables. `packets` are packed with the problem's columns; problem.weight
/// is that of its rows under them. Rows of the problem must not shadow each other.
[[nodiscard]] Tree build_tree(const RuleSet& rules, const Problem& problem, const Rows& packets,
                              const std::vector<double>& packet_weight, const TreeOptions& options);

}  // namespace greynic::optimizer
