#include "parameters/parameter_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "greynic/core/embedded.h"
#include "greynic/files/json_file.h"

namespace greynic::twin {

std::span<const EmbeddedFile> embedded_fleets();    // made by cmake from configs/fleets
std::span<const EmbeddedFile> embedded_switches();  // and from configs/switches

namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "parameter_set";

Result<ParameterSet> parse(const json& document, const std::string& source) {
  ParameterSet set;
  set.source = source;
  set.id = document.at("id").get<std::string>();
  set.name = document.at("name").get<std::string>();
  const json& parameters = document.at("parameters");
  for (const auto& [name, unused] : parameters.items()) {
    auto fact = read_fact(document, parameters, name, "/parameters", source);
    if (!fact) return pass_on(fact);
    set.facts.push_back(std::move(*fact));
  }
  return set;
}

}  // namespace

Result<ParameterSet> load_parameter_set(std::string_view folder, const std::string& name_or_path) {
  const auto embedded = folder == "fleets" ? embedded_fleets() : embedded_switches();
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded) {
    names.emplace_back(file.name.substr(0, file.name.rfind(".json")));
    if (names.back() != name_or_path) continue;
    const std::string source = fmt::format("configs/{}/{}", folder, file.name);
    auto document = files::parse_json(file.text, source);
    if (!document) return pass_on(document);
    if (auto ok = files::check_schema(*document, kSchema, source); !ok) return pass_on(ok);
    return parse(*document, source);
  }
  if (name_or_path.find_first_of("./") == std::string::npos) {
    return fail(ErrorCode::kBadInput,
                fmt::format("'{}' is not one of the {} that are built in ({}); give one of them or "
                            "the path of a file",
                            name_or_path, folder, fmt::join(names, ", ")));
  }
  auto document = files::read_json(name_or_path, kSchema);
  if (!document) return pass_on(document);
  return parse(*document, name_or_path);
}

Result<double> bounded_value(const ParameterSet& set, std::string_view name, double minimum,
                             double maximum) {
  for (const ParameterFact& fact : set.facts) {
    if (fact.name != name) continue;
    const double value = fact.value.value_or(0.0);
    if (value >= minimum && value <= maximum) return value;
    return files::bad_value(set.source, fmt::format("/parameters/{}/value", name),
                            fmt::format("{} is {}, outside {} to {}; give a value in that range",
                                        name, value, minimum, maximum));
  }
  return files::bad_value(
      set.source, "/parameters",
      fmt::format("{} is missing; give it value, unit, grade and source", name));
}

Result<void> refuse_unknown(const ParameterSet& set, std::span<const std::string_view> names) {
  for (const ParameterFact& fact : set.facts) {
    if (std::find(names.begin(), names.end(), fact.name) == names.end()) {
      return files::bad_value(set.source, "/parameters/" + fact.name,
                              "no such parameter; docs/formats/parameter_set.md lists them");
    }
  }
  return {};
}

}  // namespace greynic::twin
