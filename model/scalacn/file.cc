#include <nlohmann/json.hpp>

#include "data/model_file.h"
#include "greynic/files/json_file.h"
#include "scalacn/model.h"

namespace greynic::model {

using nlohmann::json;

std::string ScalacnModel::to_json_text() const {
  const ScalacnCoefficients& k = state_.coefficients;
  json residual = json::object();
  for (int o = 0; o < kOutputCount; ++o) {
    if (state_.residual[o]) residual[std::string(kOutputNames[o])] = *state_.residual[o];
  }
  json document = file_head(law(), state_);
  document["coefficients"] = {{"u", k.u}, {"v", k.v}, {"m", k.m}, {"n", k.n},
                              {"w", k.w}, {"a", k.a}, {"b", k.b}, {"c", k.c}};
  document["residual"] = residual;
  document["bandwidth_covariance"] = state_.bandwidth_covariance;
  document["latency_covariance"] = state_.latency_covariance;
  if (state_.line_gbps) document["line_gbps"] = *state_.line_gbps;
  return files::json_text(document, 1) + "\n";
}

Result<std::unique_ptr<Model>> scalacn_from_json(const json& document, const std::string& source) {
  ScalacnState state;
  if (auto head = read_file_head(document, source, state); !head) return pass_on(head);
  const json& k = document.at("coefficients");
  const auto number = [&](const char* name) { return k.at(name).get<double>(); };
  state.coefficients = {number("u"), number("v"), number("m"), number("n"),
                        number("w"), number("a"), number("b"), number("c")};
  if (state.coefficients.v == 0.0) {
    return files::bad_value(source, "/coefficients/v", "the width must not be 0");
  }
  for (int o = 0; o < kOutputCount; ++o) {
    const auto found = document.at("residual").find(std::string(kOutputNames[o]));
    if (found != document.at("residual").end()) state.residual[o] = found->get<double>();
  }
  state.bandwidth_covariance = document.at("bandwidth_covariance").get<std::vector<double>>();
  state.latency_covariance = document.at("latency_covariance").get<std::vector<double>>();
  const auto shaped = [](const std::vector<double>& m, std::size_t n) {
    return m.empty() || m.size() == n * n;
  };
  if (!shaped(state.bandwidth_covariance, 5) || !shaped(state.latency_covariance, 3)) {
    return files::bad_value(source, "/bandwidth_covariance",
                            "must hold 25 numbers or none, latency_covariance 9 or none");
  }
  if (document.contains("line_gbps")) state.line_gbps = document.at("line_gbps").get<double>();
  return std::make_unique<ScalacnModel>(std::move(state));
}

}  // namespace greynic::model
