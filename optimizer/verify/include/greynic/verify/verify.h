#pragma once

/// Is a layout equivalent to a rule set? Decided exactly, packet space by packet space, with code
/// that the optimizer does not share, and with a packet that shows the difference when there is
/// one.
///
/// How: the space of packets is halved, bit by bit, and both sides are cut down to what can still
/// match in each half. A region is settled when one rule of each side covers it (their actions are
/// compared), or when both sides hold the same rules there and every two of them that stand in
/// another order are disjoint or do the same. Else it is halved again, down to single packets if
/// need be: the answer never depends on how the layout came about.
///
/// Tables of the rule set are compared one by one: each must exist in the layout under its id. A
/// jump to a table that only the layout has is followed; a jump to any other is an action like the
/// rest. On the way to an added table a rule may also copy header fields into registers that
/// nothing else uses (Open vSwitch's "move"): that only looks. A packet that matches nothing is
/// missed, which is not the same as dropped.

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
  std::uint64_t regions = 0;  ///< settled in all
};

/// kUnsupported: a layout rule does more than jump on its way to a table that only the layout has,
/// or its jumps form a loop. kBadInput: a rule is not under its matcher's mask, or a table comes
/// twice. kTooBig: most_regions did not suffice; the message says for how many rules.
[[nodiscard]] Result<Verdict> verify(const RuleSet& rules, const Layout& layout,
                                     const VerifyOptions& options = {});

}  // namespace greynic::verify
