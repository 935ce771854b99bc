#pragma once

/// Planted defects: the causes of ScalaCN's symptoms S1 to S8 and the triggers of Collie's
/// anomalies C1 to C18. Each appears when all of its trigger holds and not otherwise;
/// docs/twin/defects.md has one paragraph on each. This header is private to the twin: it is the
/// truth that others must infer.

#include <bitset>
#include <string>
#include <string_view>

#include "effects.h"
#include "greynic/core/configuration.h"
#include "greynic/core/result.h"

namespace greynic::twin {

inline constexpr std::size_t kDefectCount = 26;  ///< S1 to S8, then C1 to C18

/// Which defects are on, by index.
using DefectSet = std::bitset<kDefectCount>;

/// "S1" to "S8", "C1" to "C18".
[[nodiscard]] std::string defect_name(std::size_t index);

/// Reads "S1,S6,C4" or "none". kBadInput names the unknown one.
[[nodiscard]] Result<DefectSet> read_defects(std::string_view text);

/// What is on when nothing is said: S6, which is how every published RNIC behaves.
[[nodiscard]] DefectSet usual_defects();

[[nodiscard]] constexpr std::size_t scalacn_defect(std::size_t number) { return number - 1; }
[[nodiscard]] constexpr std::size_t collie_defect(std::size_t number) { return 8 + number - 1; }

}  // namespace greynic::twin
