#pragma once

/// Decides exactly whether a layout does to every packet what a rule set does. The code is not the
/// optimizer's. When the two differ, the answer is a packet that shows it.
///
/// How: the space of packets is halved, bit by bit. In each half, both sides keep only the rules
/// that can still match. A region is settled in one of two ways:
///   - one rule of each side covers it: their actions are compared;
///   - both sides hold the same rules there, and every two of them that stand in another order are
///     disjoint or do the same: the region is equivalent.
/// Any other region is halved again, down to single packets if need be, so the answer does not
/// depend on how the layout was made.
///
/// Where that takes too many comparisons, as with tables that many jumps share, the layout's jumps
/// are written out first: a shared table comes out once (optimizer/verify/src/flatten.h). The list
/// is halved too, and a region may be settled in a third way:
///   - each rule of the layout lies inside rules of the set that do the same, all that wins over
///     those there was tried before it, and nothing is missed: the region is equivalent.
/// Where that takes too many comparisons as well, the first way goes on to the end.
///
/// Example: the rules and the layout of greynic/optimizer/optimize.h. Both sides hold the same four
/// rules; rules 1 and 2 stand in another order, but no packet matches both: equivalent, settled in
/// one region. Now exchange the two matchers. Rules 0 and 1 stand in another order too, they
/// overlap and do different things, so the space is halved until such a packet is left:
///
///     packet      ipv4_dst=10.1.0.1,l4_dst_port=22
///     by rules    drop          (rule 0)
///     by layout   forward p1    (matcher B comes first, and its rule 1 matches)
///
/// Tables of the rule set are compared one by one; each must exist in the layout under its id. A
/// jump to a table that only the layout has is followed; a jump to any other is an action like the
/// rest. On the way to an added table, a rule may also copy header fields into registers that
/// nothing else uses (Open vSwitch's "move"), which changes nothing for the packet. A packet that
/// matches nothing is missed, which is not the same as dropped.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::verify {

struct VerifyOptions {
  /// Regions looked at before giving up with kTooBig; at about 2 us each, 20 minutes at most.
  std::uint64_t most_regions = 500'000'000;
  /// Of two rules, or of a rule and a region; for each table, before the long way. A few seconds of
  /// work. An eighth is for halving alone.
  std::uint64_t most_comparisons = 1'000'000'000;
  bool quick = false;  ///< give up with kTooBig instead of the long way
  /// Called now and then with the share of the packet space that is settled, 0..1.
  std::function<void(double)> progress;
};

/// A packet that the two sides treat differently.
struct Counterexample {
  std::uint32_t table = 0;  ///< where it enters
  Packet packet;
  std::string by_rules;  ///< actions, or "no match"
  std::string by_layout;
};

struct Verdict {
  bool equivalent = false;
  std::optional<Counterexample> counterexample;  ///< set when not equivalent
  std::size_t tables = 0;
  std::uint64_t regions = 0;      ///< settled in all, on the ways that decided
  std::uint64_t comparisons = 0;  ///< made on the ways that are tried first
};

/// kUnsupported: a layout rule does more than jump on its way to a table that only the layout has,
/// or its jumps form a loop. kBadInput: a rule is not under its matcher's mask, or a table comes
/// twice. kTooBig: most_regions did not suffice (or most_comparisons, when quick); the message says for how many rules.
[[nodiscard]] Result<Verdict> verify(const RuleSet& rules, const Layout& layout,
                                     const VerifyOptions& options = {});

}  // namespace greynic::verify
