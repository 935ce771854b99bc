#pragma once

/// Puts into hardware of few entries what saves most, and leaves the rest to the slow path.
///
/// A packet that the hardware decides costs the matchers that it tries there. One that it does not
/// decide costs those that it tried in vain, and the price of the slow path on top. So a hot flow pays
/// for its entry, and a cold mask makes all packets behind it pay.
///
/// What comes out is one layout, in the order in which packets meet it:
///   1. a hyper mask: one matcher that looks at all bits that any rule looks at, with an entry for
///      each of the hottest flows. No order among rules matters to it. It comes only where it saves
///      more than `act_above`;
///   2. cascading masks: entries for what many packets share, hot masks first, cut by jumps where that
///      pays. An entry is a rule that nothing stands before; or a part of a rule that is cut out by
///      further bits, so that nothing stands before it; or a rule behind entries that send to the slow
///      path what stands before it;
///   3. a last entry that sends all else to the slow path: a table of software with all rules.
///
/// verify() judges the whole, so entries and slow path together do what the rules do. Entries of the
/// hyper mask may leave the hardware and come back: verify() has seen the layout without them, too.
///
/// Example: 100 rules, entries 3, price 100. Rule 7 takes half of the packets, and rule 3, which
/// overlaps it, none. The rest goes to one flow of rule 90. Then the hyper mask holds the flow of rule
/// 90, and rule 7, cut to packets that rule 3 does not match, comes behind it; the last entry jumps.
///
/// Costs: flows x rules comparisons for the hottest flows, then a few layouts of so many entries.

#include <cstddef>
#include <cstdint>

#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

struct SplitOptions {
  std::size_t entries = 0;  ///< that the hardware holds, jumps included; at least 2
  /// Of a packet that goes to the slow path, in matchers tried, on top of those of the hardware.
  double slow_path = 100.0;
  double act_above = 0.05;  ///< share of the cost that a hyper mask must save
  /// Share of the packets to come, 0..1, that belong to flows which are not in the traffic, but to
  /// the same rules, as often. The other packets' flows are those of the traffic.
  double new_flows = 0.0;
  /// Entries of the hyper mask that no packet hit for so long may leave; 0: they stay.
  std::uint32_t idle_seconds = 0;
  OptimizeOptions search;  ///< seed, limits and cost model; max_growth is not used
};

struct Split {
  /// `before`: all rules in hardware, in their order. `after`: the hardware's tables; predictions are
  /// for the whole cost.
  OptimizedLayout made;
  std::size_t hyper_entries = 0;
  double hyper_share = 0.0;         ///< of the packets, decided by the hyper mask
  double slow_share = 0.0;          ///< of the packets that go to the slow path
  double cost = 0.0;                ///< mean over the packets, in matchers tried
  double cost_for_new = 0.0;        ///< the same of new flows, judged by flows that led to no entry
  double cost_expected = 0.0;       ///< of both, `new_flows` of the latter: what was minimised
  double cost_without_hyper = 0.0;  ///< the same of the best that was found without a hyper mask
  std::uint32_t slow_table = 0;     ///< where the slow path begins
};

/// The tables that are not the slow path's.
[[nodiscard]] Layout hardware_of(const Layout& layout);

/// Adds a table of software, `id`, with all rules in their order; they are of one table.
void add_slow_path(const RuleSet& rules, std::uint32_t id, Layout& layout);

/// kUnsupported: rules of several tables, or whose jumps leave them. kTooBig: as optimize().
/// kBadInput: fewer than two entries, or prices that are not positive.
[[nodiscard]] Result<Split> split_hardware(const RuleSet& rules, const Traffic& traffic,
                                           const SplitOptions& options);

/// Mean over the packets of matchers tried in hardware, and the price for those that jump to
/// `slow_table` or miss; `slow_share` becomes the share of these.
[[nodiscard]] double split_cost(const Layout& hardware, const Traffic& traffic,
                                std::uint32_t slow_table, double slow_path, double& slow_share);

}  // namespace greynic::optimizer
