#include <cmath>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::files {

using nlohmann::json;

json to_json(const FactorValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const double* number = std::get_if<double>(&value)) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: below it no whole number is rounded
    if (std::nearbyint(*number) != *number || std::abs(*number) >= kExact) return *number;
    return static_cast<std::int64_t>(*number);
  }
  return std::get<std::string>(value);
}

json to_json(const Configuration& configuration) {
  json object = json::object();
  for (const auto& [name, value] : configuration.levels()) object[name] = to_json(value);
  return object;
}

Result<Configuration> configuration_from_json(const json& object, const std::string& source,
                                              const std::string& json_path) {
  if (!object.is_object()) {
    return bad_value(source, json_path, "must be an object of factor: level");
  }
  Configuration configuration;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean()) {
      configuration.set(name, value.get<bool>());
    } else if (value.is_number()) {
      configuration.set(name, value.get<double>());
    } else if (value.is_string()) {
      configuration.set(name, value.get<std::string>());
    } else {
      return bad_value(source, json_path + "/" + name,
                       "a level must be a number, a text, true or false");
    }
  }
  return configuration;
}

}  // namespace greynic::files
