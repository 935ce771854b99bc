#pragma once

/// Parameter files of what surrounds an RNIC: the virtual switch (configs/switches) and the fleet
/// (configs/fleets). As in RNIC models every parameter has value, unit, grade and source; unlike
/// there, each is one plain number. docs/formats/parameter_set.md.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "parameters/parameters.h"

namespace greynic::twin {

/// Ties a name of the file to a number of the program and bounds it.
template <typename Into>
struct ParameterRow {
  std::string_view name;
  double Into::*member;
  double minimum;
  double maximum;
};

struct ParameterSet {
  std::string source;  ///< the file, for messages
  std::string id;
  std::string name;
  std::vector<ParameterFact> facts;
};

/// Loads a compiled-in set of `folder` ("fleets", "switches") by name, or a file by path (one that
/// has a '.' or '/'). kBadInput for an unknown name or a file that breaks its schema.
[[nodiscard]] Result<ParameterSet> load_parameter_set(std::string_view folder,
                                                      const std::string& name_or_path);

/// Finds one row; kBadInput when it is missing or outside its bounds.
[[nodiscard]] Result<double> bounded_value(const ParameterSet& set, std::string_view name,
                                           double minimum, double maximum);
/// kBadInput for a name that no row has.
[[nodiscard]] Result<void> refuse_unknown(const ParameterSet& set,
                                          std::span<const std::string_view> names);

/// Every row of `table` from `set`; nothing missing, nothing unknown, nothing out of bounds.
template <typename Into>
[[nodiscard]] Result<Into> take_parameters(const ParameterSet& set,
                                           std::span<const ParameterRow<Into>> table) {
  Into into;
  std::vector<std::string_view> names;
  for (const ParameterRow<Into>& row : table) {
    const auto value = bounded_value(set, row.name, row.minimum, row.maximum);
    if (!value) return pass_on(value);
    into.*row.member = *value;
    names.push_back(row.name);
  }
  if (auto ok = refuse_unknown(set, names); !ok) return pass_on(ok);
  return into;
}

}  // namespace greynic::twin
