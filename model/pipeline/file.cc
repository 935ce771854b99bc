#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/model_file.h"
#include "greynic/files/json_file.h"
#include "pipeline/model.h"

namespace greynic::model {

using nlohmann::json;
using pipeline::kParameterCount;

namespace {

std::string_view name_of(pipeline::Interval::Method method) {
  switch (method) {
    case pipeline::Interval::Method::kProfile:
      return "profile";
    case pipeline::Interval::Method::kBootstrap:
      return "bootstrap";
    default:
      return "covariance";
  }
}

/// Bounds in the file are shown values, which may have been written by hand: never NaN.
pipeline::Interval interval_from(const json& object, pipeline::Parameter parameter) {
  pipeline::Interval interval;
  const auto bound = [&](const char* name) {
    const double value = object.value(name, object.at("value").get<double>());
    return pipeline::parameters()[parameter].logarithmic ? std::log(std::max(1e-300, value))
                                                         : value;
  };
  interval.low = bound("low");
  interval.high = bound("high");
  const std::string method = object.value("interval", std::string("covariance"));
  if (method == "profile") interval.method = pipeline::Interval::Method::kProfile;
  if (method == "bootstrap") interval.method = pipeline::Interval::Method::kBootstrap;
  return interval;
}

}  // namespace

std::string PipelineModel::to_json_text() const {
  json parameters = json::array();
  json covariance = json::array();
  for (int j = 0; j < kParameterCount; ++j) {
    const auto parameter = static_cast<pipeline::Parameter>(j);
    const pipeline::ParameterInfo& info = pipeline::parameters()[j];
    const pipeline::Interval& interval = state_.interval[static_cast<std::size_t>(j)];
    parameters.push_back({{"name", info.name},
                          {"value", pipeline::shown(parameter, state_.values[j])},
                          {"low", pipeline::shown(parameter, interval.low)},
                          {"high", pipeline::shown(parameter, interval.high)},
                          {"interval", name_of(interval.method)},
                          {"unit", info.unit},
                          {"meaning", info.meaning}});
    json row = json::array();
    for (int k = 0; k <= j; ++k) row.push_back(state_.covariance[j * kParameterCount + k]);
    covariance.push_back(std::move(row));
  }
  json noise = json::object();
  for (int o = 0; o < kOutputCount; ++o) {
    if (!state_.fitted[o]) continue;
    noise[std::string(kOutputNames[o])] = {{"scatter", state_.noise[o].scatter},
                                           {"run", state_.noise[o].run},
                                           {"left_out", state_.noise[o].left_out},
                                           {"growth", state_.noise[o].growth},
                                           {"left_out_by_region", state_.left_out[o].to_json()},
                                           {"unexplained", state_.unexplained[o].to_json()}};
  }
  json document = file_head(law(), state_);
  document["assumed"] = assumed_to_json(state_.assumed);
  document["noise"] = noise;
  document["tails"] = model::to_json(state_.tails);
  document["parameters"] = parameters;
  document["covariance"] = covariance;
  return files::json_text(document, 1) + "\n";
}

Result<std::unique_ptr<Model>> pipeline_from_json(const json& document, const std::string& source) {
  PipelineState state;
  if (auto head = read_file_head(document, source, state); !head) return pass_on(head);
  auto assumed = assumed_from_json(document.at("assumed"), source);
  if (!assumed) return pass_on(assumed);
  state.assumed = std::move(*assumed);
  state.tails = tails_from_json(document.at("tails"));
  for (int o = 0; o < kOutputCount; ++o) {
    const auto found = document.at("noise").find(std::string(kOutputNames[o]));
    if (found == document.at("noise").end()) continue;
    state.fitted[o] = true;
    state.noise[o] = {.scatter = found->at("scatter").get<double>(),
                      .run = found->at("run").get<double>(),
                      .left_out = found->value("left_out", 0.0),
                      .growth = found->at("growth").get<double>()};
    state.left_out[o] = RegionErrors::from_json(found->value("left_out_by_region", json::array()));
    state.unexplained[o] = RegionErrors::from_json(found->value("unexplained", json::array()));
  }
  state.values = pipeline::typical();
  const json& parameters = document.at("parameters");
  const json& covariance = document.at("covariance");
  for (const auto& [path, there] :
       {std::pair("/parameters", parameters.size()), std::pair("/covariance", covariance.size())}) {
    if (there == kParameterCount) continue;
    return files::bad_value(
        source, path,
        fmt::format("has {} entries for the {} parameters of the pipeline law; fit again", there,
                    static_cast<int>(kParameterCount)));
  }
  state.covariance.assign(kParameterCount * kParameterCount, 0.0);
  for (int j = 0; j < kParameterCount; ++j) {
    const std::string path = fmt::format("/parameters/{}", j);
    const pipeline::ParameterInfo& info = pipeline::parameters()[j];
    if (parameters[j].at("name").get<std::string>() != info.name) {
      return files::bad_value(source, path + "/name",
                              fmt::format("must be '{}'; the order is fixed", info.name));
    }
    const double value = parameters[j].at("value").get<double>();
    if (value < info.lower || value > info.upper) {
      return files::bad_value(source, path + "/value",
                              fmt::format("must lie in {} to {}", info.lower, info.upper));
    }
    state.values[j] = pipeline::fitted(static_cast<pipeline::Parameter>(j), value);
    state.interval[static_cast<std::size_t>(j)] =
        interval_from(parameters[j], static_cast<pipeline::Parameter>(j));
    const pipeline::Interval& interval = state.interval[static_cast<std::size_t>(j)];
    if (interval.low > interval.high) {
      return files::bad_value(source, path + "/low", "must not be above high");
    }
    if (covariance[j].size() != static_cast<std::size_t>(j) + 1) {
      return files::bad_value(source, fmt::format("/covariance/{}", j),
                              fmt::format("must have {} entries", j + 1));
    }
    for (int k = 0; k <= j; ++k) {
      const double entry = covariance[j][k].get<double>();
      state.covariance[j * kParameterCount + k] = entry;
      state.covariance[k * kParameterCount + j] = entry;
    }
  }
  return std::make_unique<PipelineModel>(std::move(state));
}

}  // namespace greynic::model
