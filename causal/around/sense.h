#pragma once

/// Measures the sensitivity of a wall's metric (greynic/causal/sensitivity.h).
///
/// Tests: for each setting up to three levels, thrice; a path of one test more than there are
/// settings, rows / 4 times; and rows times two more than there are settings. Beyond kMostInSobol
/// settings only those take part in the last that mattered most in the paths; the others stay as in
/// the wall.
///
/// Source: Morris 1991 (elementary effects); Saltelli et al. 2010, table 2, (b) and (f).

#include "surroundings.h"

namespace greynic::causal {

inline constexpr std::size_t kMostInSobol = 16;

/// kAllowanceSpent: what was found until then stays in `found`.
[[nodiscard]] Result<void> sense(Surroundings& around, int rows, Sensitivity& found);

}  // namespace greynic::causal
