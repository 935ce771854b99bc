#include "greynic/loop/layout_cost.h"

#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"
#include "greynic/loop/layout_explanation.h"

namespace greynic::loop {

nlohmann::json to_json(const optimizer::LayoutCost& cost) {
  nlohmann::json object = {{"tables", cost.tables},
                           {"matchers", cost.matchers},
                           {"rules", cost.rules},
                           {"matchers_tried_mean", cost.matchers_tried},
                           {"matchers_tried_p99", cost.matchers_tried_p99},
                           {"matchers_tried_most", cost.most_matchers_tried},
                           {"jumps_mean", cost.jumps}};
  if (cost.prediction) {
    for (const auto& [name, measure] : cost.prediction->measures) {
      object["predicted"][name] = {
          {"value", measure.value}, {"low", measure.low}, {"high", measure.high}};
    }
    object["predicted"]["extrapolated"] = cost.prediction->extrapolated;
    object["predicted"]["law"] = cost.prediction->law;
  }
  return object;
}

nlohmann::json to_json(const optimizer::OptimizedLayout& layout, const std::string& rules,
                       const std::string& traffic) {
  const auto side = [](const optimizer::LayoutCost& cost) {
    nlohmann::json object = to_json(cost);
    object["shares_by_tried"] = cost.shares_by_tried;
    return object;
  };
  return {
      {"version", 1},
      {"rules", rules},
      {"traffic", traffic},
      {"before", side(layout.before)},
      {"after", side(layout.after)},
      {"entries", {{"input", layout.rules_given}, {"layout", layout.after.rules}}},
      {"bound",
       {{"matchers", layout.bound.matchers}, {"matchers_tried_mean", layout.bound.matchers_tried}}},
      {"seconds", layout.seconds},
      {"rules_dropped", layout.rules_dropped},
      {"proof",
       {{"tables", layout.proof.tables},
        {"pairs", layout.proof.pairs},
        {"regions", layout.proof.regions}}},
      {"notes", layout.notes}};
}

std::string optimization_text(const TuneOptions& options, const TuneOutcome& outcome) {
  const optimizer::OptimizedLayout& optimized = *outcome.layout;
  nlohmann::json document = to_json(optimized, options.rules, options.traffic);
  document["proof"]["verified"] = outcome.verified;
  if (!outcome.by_model.empty()) document["models"] = to_json(outcome.by_model);
  if (const Layout& fitted = outcome.fitted->layout(); !(fitted == optimized.layout)) {
    document["applied"] = {{"matchers", fitted.matcher_count()}, {"rules", fitted.rule_count()}};
  }
  if (outcome.curve) document["curve"] = to_json(*outcome.curve);
  if (outcome.mask_curve) document["mask_curve"] = to_json(*outcome.mask_curve);
  return files::json_text(document);
}

}  // namespace greynic::loop
