#include "greynic/loop/layout_cost.h"

#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"

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

std::string optimization_text(const TuneOptions& options, const TuneOutcome& outcome) {
  const optimizer::OptimizedLayout& optimized = *outcome.layout;
  const auto side = [](const optimizer::LayoutCost& cost) {
    nlohmann::json object = to_json(cost);
    object["shares_by_tried"] = cost.shares_by_tried;
    return object;
  };
  nlohmann::json document = {{"version", 1},
                             {"rules", options.rules},
                             {"traffic", options.traffic},
                             {"before", side(optimized.before)},
                             {"after", side(optimized.after)},
                             {"rules_dropped", optimized.rules_dropped},
                             {"proof",
                              {{"tables", optimized.proof.tables},
                               {"pairs", optimized.proof.pairs},
                               {"regions", optimized.proof.regions},
                               {"verified", outcome.verified}}}};
  if (const Layout& fitted = outcome.fitted->layout(); !(fitted == optimized.layout)) {
    document["applied"] = {{"matchers", fitted.matcher_count()}, {"rules", fitted.rule_count()}};
  }
  return files::json_text(document);
}

}  // namespace greynic::loop
