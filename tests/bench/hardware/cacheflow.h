#pragma once

/// The cache policy of CacheFlow (Katta, Alipourfard, Rexford, Walker: SOSR 2016), as a peer: which
/// rules a hardware table of so many entries holds, when a rule may only be there with what must be
/// decided before it. Written from the paper's "mixed set": for each rule the better of two ways,
/// by weight for each entry:
///   - dependent set: all rules before it that overlap it come along, and theirs;
///   - cover set: each of them that it meets directly becomes an entry that sends to software.
/// In its favour: rules that do the same do not depend on each other, and a cover that lies in
/// another one is left out.

#include <cstdint>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::bench {

/// The rules of the hardware in their order, the last of which sends all that is left to
/// `slow_table`. `weight` is by rule of `rules`, which have one table.
[[nodiscard]] RuleSet cacheflow_rules(const RuleSet& rules, const std::vector<double>& weight,
                                      std::size_t entries, std::uint32_t slow_table);

/// Which rule decides each packet; rules.size() for none. By another way than the optimizer's: one
/// hash table for each mask, all looked at.
[[nodiscard]] std::vector<std::size_t> deciders(const RuleSet& rules, const Traffic& traffic);

}  // namespace greynic::bench
