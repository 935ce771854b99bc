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

/// Reads the parameter at `json_path` of a document that its schema allows. kBadInput when the
/// source that it names is none of the document's "sources".
[[nodiscard]] Result<ParameterFact> read_fact(const nlohmann::json& document,
                                              const std::string& json_path,
                                              const std::string& file);

}  // namespace greynic::twin
