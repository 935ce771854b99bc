#include "parameters/parameter_fact.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"

namespace greynic::twin {

Result<ParameterFact> read_fact(const nlohmann::json& document, const nlohmann::json& in,
                                const std::string& name, const std::string& place,
                                const std::string& file) {
  const nlohmann::json& object = in.at(name);
  ParameterFact fact;
  fact.name = name;
  if (!object.at("value").is_null()) fact.value = object.at("value").get<double>();
  if (const auto found = object.find("by_operation"); found != object.end()) {
    for (const auto& [operation, value] : found->items()) {
      fact.by_operation.emplace_back(operation, value.get<double>());
    }
  }
  fact.unit = object.at("unit").get<std::string>();
  fact.grade = object.at("grade").get<std::string>();
  fact.source = object.at("source").get<std::string>();
  fact.note = object.value("note", "");
  fact.free = object.value("free", false);
  if (!document.at("sources").contains(fact.source)) {
    return files::bad_value(file, place + "/" + name + "/source",
                            fmt::format("\"sources\" does not explain '{}'", fact.source));
  }
  return fact;
}

}  // namespace greynic::twin
