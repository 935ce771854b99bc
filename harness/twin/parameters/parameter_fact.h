#pragma once

/// One parameter as its file states it: what `greynic devices twin:NAME` prints.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::twin {

struct ParameterFact {
  std::string name;
  std::optional<double> value;
  std::vector<std::pair<std::string, double>> by_operation;
  std::string unit;
  std::string grade;
  std::string source;
  std::string note;
  bool free = false;  ///< was fitted to published curves of this RNIC
};

/// Reads the parameter of this name of an object in a document that its schema allows; `place` is
/// where the object stands. kBadInput when the source that the parameter names is none of the
/// document's "sources".
[[nodiscard]] Result<ParameterFact> read_fact(const nlohmann::json& document,
                                              const nlohmann::json& in, const std::string& name,
                                              const std::string& place, const std::string& file);

}  // namespace greynic::twin
