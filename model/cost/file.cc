#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cost/law.h"
#include "data/model_file.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/statistics/distributions.h"

namespace greynic::model {

using nlohmann::json;
using statistics::kNormal95;

std::string CostModel::to_json_text() const {
  json parameters = json::array();
  json curves = json::object();
  const std::size_t n = state_.terms.size();
  for (const auto& [name, curve] : state_.curves) {
    for (std::size_t k = 0; k < n; ++k) {
      const double half_width = kNormal95 * std::sqrt(std::max(0.0, curve.covariance[k * n + k]));
      parameters.push_back({{"measure", name},
                            {"name", state_.terms[k].name()},
                            {"value", curve.values[k]},
                            {"low", std::max(0.0, curve.values[k] - half_width)},
                            {"high", curve.values[k] + half_width},
                            {"unit", unit_of(name, state_.terms[k])},
                            {"meaning", info_of(state_.terms[k].kind).meaning}});
    }
    curves[name] = {
        {"values", curve.values}, {"covariance", curve.covariance}, {"scatter", curve.scatter}};
  }
  json terms = json::array();
  for (const CostTerm& term : state_.terms) {
    terms.push_back({{"kind", info_of(term.kind).name}, {"factor", term.factor}});
  }
  json document = file_head(law(), state_);
  document["assumed"] = files::to_json(state_.assumed);
  document["terms"] = terms;
  document["curves"] = curves;
  document["parameters"] = parameters;
  return files::json_text(document, 1) + "\n";
}

Result<std::unique_ptr<Model>> cost_from_json(const json& document, const std::string& source) {
  CostState state;
  if (auto head = read_file_head(document, source, state); !head) return pass_on(head);
  auto assumed = assumed_levels_from_json(document.at("assumed"), source, "/assumed");
  if (!assumed) return pass_on(assumed);
  state.assumed = std::move(*assumed);
  for (const json& term : document.at("terms")) {
    const std::string kind = term.at("kind").get<std::string>();
    std::optional<CostTermKind> found;
    for (int k = 0; k <= static_cast<int>(CostTermKind::kCacheSteep); ++k) {
      if (info_of(static_cast<CostTermKind>(k)).name == kind) found = static_cast<CostTermKind>(k);
    }
    if (!found) return files::bad_value(source, "/terms", "has no kind '" + kind + "'");
    state.terms.push_back({*found, term.at("factor").get<std::string>()});
  }
  const std::size_t n = state.terms.size();
  for (std::size_t k = 0; k < n; ++k) {
    const bool half = state.terms[k].kind == CostTermKind::kCacheHalf;
    const bool followed = k + 1 < n && state.terms[k + 1].kind == CostTermKind::kCacheSteep;
    if (half && !followed) return files::bad_value(source, "/terms", "half needs its steepness");
  }
  for (const auto& [name, object] : document.at("curves").items()) {
    CostCurve curve{object.at("values").get<std::vector<double>>(),
                    object.at("covariance").get<std::vector<double>>(),
                    object.at("scatter").get<double>()};
    const bool positive =
        std::all_of(curve.values.begin(), curve.values.end(), [](double x) { return x >= 0.0; });
    if (curve.values.size() != n || curve.covariance.size() != n * n || !positive) {
      return files::bad_value(source, "/curves/" + name,
                              "needs a value of at least 0 for each term, and their covariance");
    }
    state.curves.emplace(name, std::move(curve));
  }
  return std::make_unique<CostModel>(std::move(state));
}

}  // namespace greynic::model
