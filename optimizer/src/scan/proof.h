#pragma once

/// Proves that a layout does to every packet what the rule set does, by an exact overlap scan over
/// the finished layout: nothing is taken from the search that made it.
///
/// For each layout table, under the region R of packets that reach it (R narrows at every jump),
/// with I the input rules that overlap R, without those that one winning over them contains in R:
///   1. every layout rule s has a witness: an input rule of equal effect that contains s in R;
///   2. an input rule that wins over the witness, overlaps s in R and does something else has,
///   where
///      they overlap, been taken out by layout rules tried before s;
///   3. the layout rules tried together contain every input rule of I in R: nothing is missed;
///   4. a jump is proven for the region that it takes, and for the input rules that no layout rule
///      tried before it contains.
/// By 1 and 2 a packet that s decides gets what the set does to it; by 3 and 4 no other is left.
/// The check is sound. It is not complete: a correct layout without witnesses is refused.

#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

/// kInternal names the table and the rule at which the proof fails.
[[nodiscard]] Result<Proof> prove(const RuleSet& rules, const Layout& layout);

}  // namespace greynic::optimizer
