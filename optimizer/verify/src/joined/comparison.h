#pragma once

/// One table of the rule set and what the layout makes of it, as two lists of a pool.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "src/joined/onward.h"
#include "src/joined/rules_side.h"
#include "src/places.h"
#include "src/pool.h"
#include "src/register_use.h"

namespace greynic::verify {

using TableIds = std::set<std::uint64_t>;

/// Texts of action lists, numbered; equal texts do the same. Nothing to do is a drop.
class EffectNames {
 public:
  std::uint32_t number(const Actions& actions);
  [[nodiscard]] std::string name(std::uint32_t effect) const {
    return effect == kMiss ? "no match" : names_[effect];
  }
  [[nodiscard]] const Actions& actions(std::uint32_t effect) const { return actions_[effect]; }
  [[nodiscard]] const std::vector<Actions>& all() const { return actions_; }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
  std::vector<Actions> actions_;
};

struct Comparison {
  std::uint32_t table;
  PacketSpace space;
  EffectNames effects;
  Pool pool{space};
  std::size_t layout_rules = 0;
  std::vector<std::uint32_t> ways;  ///< of the rules' side, by place in the pool's rules
};

/// The table that only the layout has to which a rule goes on; kNoJump when it ends there.
[[nodiscard]] Result<std::uint32_t> continuation(const FlowRule& rule, const TableIds& added,
                                                 const RegistersInUse& registers);

/// What one comparison is made of; all references must outlive it.
struct Sides {
  std::uint32_t table;
  const std::vector<const FlowRule*>& rules;
  const std::vector<const LayoutTable*>& tables;  ///< reached without leaving the input table
  const TableIds& added;
  const RegistersInUse& registers;
  const Onward& onward;
};

/// May the layout's packets be followed into the next table of the set after these actions? Only
/// towards smaller ranks: that the layout does right there must not be shown by what it does here.
[[nodiscard]] bool may_follow(const Sides& sides, const Actions& actions);

/// Where the layout has done `opened` to a packet, it goes on by what the rules of the next table do.
[[nodiscard]] Comparison comparison_of(const Sides& sides, const RulesSide& rules,
                                       const std::set<Actions>& opened);

/// Does the layout do what no rule of the table does by itself?
[[nodiscard]] bool does_more_at_once(const Sides& sides);

/// Looks some packets of each rule of the layout up on both sides, and opens ways of the rules where
/// the layout goes further. Which packets goes with `round`.
void open_as_far_as_layout(const Comparison& compared, const Places& places, std::uint64_t round,
                           RulesSide& rules);

}  // namespace greynic::verify
