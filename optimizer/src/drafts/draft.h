#pragma once

/// One input table laid out by the best search that can be proven, to be put together with others.

#include <cstdint>
#include <map>
#include <vector>

#include "greynic/optimizer/optimize.h"
#include "greynic/verify/verify.h"
#include "src/problem.h"
#include "src/table_planner.h"

namespace greynic::optimizer {

/// Proves layouts of single tables by the verifier, until all of them together used up the
/// comparisons: a count, so that the same input gives the same layout on every machine.
class QuickProver {
 public:
  /// `later`: all tables together are proven when they are done, so that none needs a proof of its own.
  /// `most_once`: comparisons for one layout; what it leaves is for another.
  explicit QuickProver(bool later = false, std::uint64_t most_once = 600'000'000)
      : later_(later), most_once_(most_once) {}
  bool proves(const RuleSet& rules, const Layout& layout, Proof& proof);
  /// Layouts that were wrong: faults of the search, which nobody should have to take on trust.
  [[nodiscard]] std::size_t refuted() const { return refuted_; }

 private:
  bool later_;
  std::uint64_t most_once_;
  std::uint64_t left_ = 2'100'000'000;
  std::size_t refuted_ = 0;
};

struct TableDraft {
  RuleSet rules;  ///< of this table
  Traffic arriving;
  std::vector<LayoutTable> tables;
  std::uint32_t first_free = 0;  ///< ids from here on are of tables that were added
  bool proven = false;           ///< by itself; else the overlap scan is still to come
  std::size_t dropped = 0;       ///< rules that decide nothing
  ChainBound bound;              ///< of a packet that comes here
  Proof proof;

  /// Are these its rules and packets, whatever the ids of added tables?
  [[nodiscard]] bool is_for(const RuleSet& all, const std::vector<std::uint32_t>& members,
                            const Traffic& packets) const;
  /// Added tables get ids from `to` on; false where one would lie beyond the last.
  bool renumber(std::uint32_t to, std::uint32_t last_table);
};
using Drafts = std::map<std::uint32_t, TableDraft>;  ///< by table

/// `room.most_rules` is raised to the rules that decide something.
[[nodiscard]] TableDraft draft_table(const RuleSet& rules,
                                     const std::vector<std::uint32_t>& members,
                                     const Traffic& arriving, const OptimizeOptions& options,
                                     TableRoom room, Effects& effects, QuickProver& quick);

/// What is known of a table without any search.
struct UndividedTable {
  std::size_t dropped = 0;  ///< rules that decide nothing
  ChainBound bound;         ///< of a packet that comes here
};
[[nodiscard]] UndividedTable undivided(const RuleSet& rules,
                                       const std::vector<std::uint32_t>& members,
                                       const Traffic& arriving, Effects& effects);

}  // namespace greynic::optimizer
