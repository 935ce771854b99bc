#pragma once

/// In what order a plan is run. The rows of a covering array count as a whole, but a campaign that
/// looks for faults is better off when what is new comes early: it may be stopped, and what it
/// finds can be explained sooner.

#include <vector>

namespace greynic::testgen {

/// Puts rows (a level for each parameter, -1 absent) behind the first `fixed` ones into an order in
/// which each next row meets the most pairs of conditions that no row before it did, then has the
/// most new triples of levels. A condition is what can be part of a cause: a level, and for an
/// `ordered` parameter (its levels ascend) "at least" and "at most" a level, so the corners of a
/// space come early. Triples are left out where there are too many to look at.
void put_new_pairs_first(std::vector<std::vector<int>>& rows, const std::vector<bool>& ordered,
                         std::size_t fixed);

}  // namespace greynic::testgen
