#pragma once

/// Decides exactly whether a layout does to every packet what a rule set does. The code is not the
/// optimizer's. When the two differ, the answer is a packet that shows it.
///
/// How: first by a proof from matcher to matcher (optimizer/verify/src/local_proof.h). Each does what
/// the rules do that it and all behind it serve; rules are compared with the layout rules that they
/// meet, and a table that many jumps share is looked at once. Where that shows nothing for some cubes
/// of packets, the sides are alike outside of them, and inside of them packets are searched
/// (optimizer/verify/src/difference.h): both sides become diagrams of what is still to be asked, and
/// are cut by one header field after another. A region is settled in one of three ways:
///   - both sides are the same diagram: they are alike;
///   - each side is down to one effect: the effects are compared;
///   - what is left of both sides was left elsewhere, and found alike there.
/// Any other region is cut again, down to single packets if need be, so the answer is exact and does
/// not depend on how the layout was made.
///
/// Example: the rules and the layout of greynic/optimizer/optimize.h. Both sides hold the same four
/// rules; rules 1 and 2 stand in another order, but no packet matches both: equivalent, and nothing is
/// left to search. Now exchange the two matchers. Rules 0 and 1 stand in another order too, they
/// overlap and do different things, so what they have in common is left, and gives a packet:
///
///     packet      ipv4_dst=10.1.0.1,l4_dst_port=22
///     by rules    drop          (rule 0)
///     by layout   forward p1    (matcher B comes first, and its rule 1 matches)
///
/// Tables of the rule set are compared one by one, for all packets; each must exist in the layout under its
/// id. A jump to a table that only the layout has is followed; a jump to any other is an action like the
/// rest, unless the layout goes further at once than the rule does. Then the rule is followed into the next
/// table, as far as the layout goes (optimizer/verify/src/joined/onward.h): what it jumps to there was compared before.
/// So from each entrance the whole pipeline does the same. On the way to an added table, a rule may also copy header fields into registers that
/// nothing else uses (Open vSwitch's "move"), which changes nothing for the packet, and set tags:
/// metadata or registers of which the rules know nothing, and which tables that only the layout has
/// match (optimizer/verify/src/tags.h). A packet that
/// matches nothing is missed, which is not the same as dropped.
///
/// Tables of the slow path (LayoutTable::software) are tables like others. Rules of a matcher with
/// idle_seconds may leave the device: equivalent means that it is so whichever of them have left.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::verify {

struct VerifyOptions {
  /// Regions looked at before giving up with kTooBig.
  std::uint64_t most_regions = 500'000'000;
  /// Of two rules, or of a rule and a region; for the first proof of each table, before all its
  /// packets are searched. A few seconds of work.
  std::uint64_t most_comparisons = 1'000'000'000;
  /// Of diagrams of bits, for one table of a pipeline; where more would be needed, packets are searched. Some 40 bytes
  /// each; 0: always search.
  std::size_t most_nodes = 4'000'000;
  bool quick = false;  ///< all of a table's proof within these, or kTooBig
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
  std::uint64_t regions = 0;      ///< searched; those that leave the same open count once
  std::uint64_t comparisons = 0;  ///< of the proofs from matcher to matcher; of all, when quick
};

/// kUnsupported: a layout rule does more than jump on its way to a table that only the layout has,
/// its jumps form a loop, or more than 64 may follow one another; rules of several matchers may leave. kBadInput: a rule is not under its
/// matcher's mask, or a table comes twice. kTooBig: most_regions did not suffice (or
/// most_comparisons, when quick); the message says for how many rules.
[[nodiscard]] Result<Verdict> verify(const RuleSet& rules, const Layout& layout,
                                     const VerifyOptions& options = {});

}  // namespace greynic::verify
