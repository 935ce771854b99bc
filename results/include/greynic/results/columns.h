#pragma once

/// The factors and measures that occur in a set of observations: the columns of tables.

#include <set>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/observation.h"

namespace greynic::results {

struct Columns {
  std::vector<std::string> factors;   ///< sorted
  std::vector<std::string> varied;    ///< factors with more than one level, or not always set
  std::vector<std::string> measures;  ///< sorted
};

[[nodiscard]] Columns columns_of(std::span<const Observation> observations);

/// Repeats of one configuration, in the order in which the configurations first occur.
struct Group {
  const Configuration* configuration = nullptr;
  std::vector<const Observation*> repeats;
};
[[nodiscard]] std::vector<Group> group_by_configuration(std::span<const Observation> observations);

/// The values of a measure over the repeats that have it.
[[nodiscard]] std::vector<double> values_of(const Group& group, std::string_view measure);

/// "message_bytes=64, qp_count=8" of the given factors alone; those not set are left out.
[[nodiscard]] std::string name_by(const Configuration& configuration,
                                  const std::vector<std::string>& factors);

}  // namespace greynic::results
