#pragma once

/// The levels of each setting in a row, from the baseline's side to the wall's and beyond: positions,
/// as structures.h counts them.

#include <optional>
#include <string>
#include <vector>

#include "src/settings.h"
#include "structures.h"

namespace greynic::causal {

struct Lane {
  Axis axis;
  std::string factor;
  std::vector<std::optional<FactorValue>> levels;  ///< by position
};

[[nodiscard]] std::vector<Lane> lanes_of(const Session& session, const Settings& settings);
[[nodiscard]] std::vector<Axis> axes_of(const std::vector<Lane>& lanes);

}  // namespace greynic::causal
