#pragma once

/// The tables of a layout in the form that a proof works with: packed into words, and those that
/// the layout added told from those that were there before.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "src/problem.h"

namespace greynic::optimizer {

inline constexpr std::uint32_t kNone = 0xffffffff;

/// A layout table, packed, rules in the order in which they are tried.
struct PackedTable {
  explicit PackedTable(std::size_t words) : rows(words) {}
  Ternaries rows;
  std::vector<std::uint32_t> matcher;  ///< position of the rule's matcher
  std::vector<std::uint32_t> effect;   ///< kNone for a jump to another part of the layout
  std::vector<std::uint32_t> target;   ///< table of that jump, else kNone
};

/// Layout tables by id.
class LayoutTables {
 public:
  /// kInternal when a table is there twice, or when an input rule jumps into an added table, where
  /// what the layout put there is its own affair.
  [[nodiscard]] static Result<LayoutTables> sort_out(const RulesOfTable& input,
                                                     const RuleSet& rules, const Layout& layout);

  [[nodiscard]] bool has(std::uint32_t id) const { return all_.contains(id); }
  /// Tables that a packet entering at `id` can reach without leaving the input table; `id` first.
  [[nodiscard]] std::vector<std::uint32_t> reach(std::uint32_t id) const;
  /// kInternal when a rule is not under its matcher's mask or looks at bits that no input rule
  /// does.
  [[nodiscard]] Result<PackedTable> packed(std::uint32_t id, const Problem& problem,
                                           Effects& effects) const;

 private:
  /// The added table that a rule jumps to, when that is all it does; else kNone.
  [[nodiscard]] std::uint32_t added_target(const FlowRule& rule) const;

  std::map<std::uint32_t, const LayoutTable*> all_;
  std::set<std::uint32_t> added_;
};

}  // namespace greynic::optimizer
