#pragma once

/// Planted defects. ScalaCN's symptoms S1 to S9 (without S6) are faults of the simulated switch and
/// driver (virtual_switch.h), S6 is how the eSwitch walks; Collie's anomalies C1 to C18, whose
/// causes their vendors keep to themselves, are conjunctions of conditions on factors: such a
/// defect shows when all of them hold and not otherwise. docs/twin/defects.md has both for people.
/// This header is private to the twin: it is the truth that others must infer.

#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/result.h"
#include "parts/effects.h"
#include "switch/virtual_switch.h"

namespace greynic::twin {

inline constexpr std::size_t kDefectCount = 27;     ///< S1 to S9, then C1 to C18
inline constexpr std::size_t kMasksInSequence = 5;  ///< S6

/// Which defects are on, by index.
using DefectSet = std::bitset<kDefectCount>;

/// One part of a trigger.
struct Condition {
  enum class Kind : std::uint8_t { kAtLeast, kAtMost, kIs };
  std::string_view factor;
  Kind kind = Kind::kAtLeast;
  double number = 0;
  std::string_view text{};       ///< kIs: the category, or "true"/"false"
  bool both_directions = false;  ///< the factor counts twice when traffic runs both ways

  [[nodiscard]] bool holds(const Configuration& configuration) const;
};

struct Defect {
  std::string_view name;  ///< "S1", "C18"
  std::string_view title;
  bool SwitchFaults::*fault = nullptr;  ///< S1 to S9: what is wrong; S6 has none
  std::vector<Condition> trigger{};     ///< C1 to C18
  void (*plant)(Effects&) = nullptr;    ///< C1 to C18: what happens when the trigger holds
};

/// All of them, by index.
[[nodiscard]] std::span<const Defect> defects();

/// Reads "S1,S6,C4" or "none". kBadInput names the unknown one.
[[nodiscard]] Result<DefectSet> read_defects(std::string_view text);

/// What is on when nothing is said: S6, which is how every published RNIC behaves.
[[nodiscard]] DefectSet usual_defects();

/// What is wrong with switch and driver when these defects are on.
[[nodiscard]] SwitchFaults faults_of(const DefectSet& on);

/// What a configuration asks of switch and driver. When it does not say how often flow counters
/// are read, the RNIC's driver does.
[[nodiscard]] SwitchLoad switch_load(const Configuration& configuration, const Parameters& rnic);

/// What the defects that are on do to packets of this configuration; the faults of switch and
/// driver apart.
[[nodiscard]] Effects effects_of(const DefectSet& on, const Configuration& configuration);

}  // namespace greynic::twin
