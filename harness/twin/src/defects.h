#pragma once

/// Planted defects: the causes of ScalaCN's symptoms S1 to S8 and the triggers of Collie's
/// anomalies C1 to C18. A trigger is a conjunction of conditions on factors: the defect shows when
/// all of them hold and not otherwise. docs/twin/defects.md has the same table for people. This
/// header is private to the twin: it is the truth that others must infer.

#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "effects.h"
#include "greynic/core/configuration.h"
#include "greynic/core/result.h"
#include "parameters.h"

namespace greynic::twin {

inline constexpr std::size_t kDefectCount = 26;  ///< S1 to S8, then C1 to C18

/// Which defects are on, by index.
using DefectSet = std::bitset<kDefectCount>;

/// One part of a trigger.
struct Condition {
  enum class Kind : std::uint8_t { kAtLeast, kAtMost, kIs, kAtLeastFactor, kOverContextLimit };
  std::string_view factor;
  Kind kind = Kind::kAtLeast;
  double number = 0;
  std::string_view
      text{};  ///< kIs: the category, or "true"/"false"; kAtLeastFactor: the other factor
  bool both_directions = false;  ///< the factor counts twice when traffic runs both ways

  [[nodiscard]] bool holds(const Configuration& configuration, const Parameters& parameters) const;
};

struct Defect {
  std::string_view name;  ///< "S1", "C18"
  std::string_view title;
  std::vector<Condition> trigger;
  void (*plant)(Effects&) = nullptr;
};

/// All of them, by index.
[[nodiscard]] std::span<const Defect> defects();

/// Reads "S1,S6,C4" or "none". kBadInput names the unknown one.
[[nodiscard]] Result<DefectSet> read_defects(std::string_view text);

/// What is on when nothing is said: S6, which is how every published RNIC behaves.
[[nodiscard]] DefectSet usual_defects();

/// What the defects that are on do to a run of this configuration.
[[nodiscard]] Effects effects_of(const DefectSet& on, const Configuration& configuration,
                                 const Parameters& parameters);

}  // namespace greynic::twin
