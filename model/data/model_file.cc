#include "data/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/model/published.h"
#include "scalacn/model.h"

namespace greynic::model {

using nlohmann::json;

json to_json(const Domain& domain) {
  json numeric = json::object();
  for (const auto& [name, range] : domain.numeric) numeric[name] = {range.low, range.high};
  json object = {{"numeric", numeric}, {"categories", domain.categories}};
  if (const auto& range = domain.requests_in_flight) {
    object["requests_in_flight"] = {range->low, range->high};
  }
  return object;
}

Domain domain_from_json(const json& object) {
  Domain domain;
  const auto range_of = [](const json& pair) {
    return Range{pair.at(0).get<double>(), pair.at(1).get<double>()};
  };
  for (const auto& [name, pair] : object.at("numeric").items()) {
    domain.numeric[name] = range_of(pair);
  }
  if (object.contains("requests_in_flight")) {
    domain.requests_in_flight = range_of(object.at("requests_in_flight"));
  }
  for (const auto& [name, seen] : object.at("categories").items()) {
    domain.categories[name] = seen.get<std::vector<std::string>>();
    std::sort(domain.categories[name].begin(), domain.categories[name].end());
  }
  return domain;
}

json file_head(const std::string& law, const FittedOn& fitted_on) {
  return {{"version", 1},
          {"law", law},
          {"observations", fitted_on.observations},
          {"domain", to_json(fitted_on.domain)},
          {"findings", fitted_on.findings}};
}

Result<void> read_file_head(const json& document, const std::string& source, FittedOn& fitted_on) {
  fitted_on.observations = document.at("observations").get<std::size_t>();
  fitted_on.findings = document.at("findings").get<std::vector<std::string>>();
  fitted_on.domain = domain_from_json(document.at("domain"));
  const Domain& domain = fitted_on.domain;
  std::map<std::string, Range> ranges;
  for (const auto& [name, range] : domain.numeric) ranges["/domain/numeric/" + name] = range;
  if (const auto& range = domain.requests_in_flight) ranges["/domain/requests_in_flight"] = *range;
  for (const auto& [path, range] : ranges) {
    if (range.low <= range.high) continue;
    return files::bad_value(source, path, "must be [low, high], the smaller one first");
  }
  return {};
}

json to_json(const std::map<std::string, Ratio>& tails) {
  json result = json::object();
  for (const auto& [name, ratio] : tails) {
    result[name] = {{"log_mean", ratio.log_mean}, {"deviation", ratio.deviation}};
  }
  return result;
}

std::map<std::string, Ratio> tails_from_json(const json& object) {
  std::map<std::string, Ratio> tails;
  for (const auto& [name, ratio] : object.items()) {
    tails[name] = {ratio.at("log_mean").get<double>(), ratio.at("deviation").get<double>()};
  }
  return tails;
}

json assumed_to_json(const std::array<Configuration, kOutputCount>& assumed) {
  json result = json::object();
  for (int o = 0; o < kOutputCount; ++o) {
    result[std::string(kOutputNames[o])] = files::to_json(assumed[o]);
  }
  return result;
}

Result<Configuration> assumed_levels_from_json(const json& object, const std::string& source,
                                               const std::string& path) {
  auto levels = files::configuration_from_json(object, source, path);
  if (!levels) return levels;
  for (const auto& [factor, level] : levels->levels()) {
    const FactorInfo* info = find_factor(factor);
    if (info == nullptr) continue;  // of the user's own device
    std::string needed;
    if (info->type == FactorType::kNumeric) {
      const double* number = std::get_if<double>(&level);
      if (number == nullptr || !(*number >= info->minimum && *number <= info->maximum)) {
        needed = fmt::format("a number from {} to {}", info->minimum, info->maximum);
      }
    } else if (info->type == FactorType::kBool) {
      if (!std::holds_alternative<bool>(level)) needed = "true or false";
    } else if (const auto* text = std::get_if<std::string>(&level);
               text == nullptr || std::find(info->categories.begin(), info->categories.end(),
                                            *text) == info->categories.end()) {
      needed = fmt::format("one of {}", fmt::join(info->categories, ", "));
    }
    if (needed.empty()) continue;
    return files::bad_value(source, path + "/" + factor,
                            fmt::format("must be {}; correct it, or fit again", needed));
  }
  return levels;
}

Result<std::array<Configuration, kOutputCount>> assumed_from_json(const json& object,
                                                                  const std::string& source) {
  std::array<Configuration, kOutputCount> assumed;
  for (int o = 0; o < kOutputCount; ++o) {
    const std::string name(kOutputNames[o]);
    if (!object.contains(name)) continue;
    auto levels = assumed_levels_from_json(object.at(name), source, "/assumed/" + name);
    if (!levels) return pass_on(levels);
    assumed[o] = std::move(*levels);
  }
  return assumed;
}

Result<std::unique_ptr<Model>> parse(std::string_view text, const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (auto fits = files::check_schema(*document, "model", source); !fits) return pass_on(fits);
  const std::string law = document->at("law").get<std::string>();
  try {
    if (law == "pipeline") return pipeline_from_json(*document, source);
    if (law == "scalacn") return scalacn_from_json(*document, source);
    if (law == "cost") return cost_from_json(*document, source);
    return surrogate_from_json(*document, source);
  } catch (const json::exception& error) {
    return files::bad_value(source, "/" + law, error.what());
  }
}

Result<std::unique_ptr<Model>> load(const std::string& path_or_name) {
  constexpr std::string_view kPublished = "published:";
  if (path_or_name.starts_with(kPublished)) {
    const PublishedRow* row = find_published(path_or_name.substr(kPublished.size()));
    if (row == nullptr) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: no such published row; there are published:cx4, cx5, cx6, cx7, "
                              "bf3 and e810",
                              path_or_name));
    }
    return published_model(*row);
  }
  const auto text = files::read_text(path_or_name);
  if (!text) return pass_on(text);
  return parse(*text, path_or_name);
}

}  // namespace greynic::model
