#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "greynic/core/units.h"
#include "greynic/model/design.h"
#include "pipeline/model.h"

namespace greynic::model {
namespace {

constexpr std::size_t kMostLevels = 7;

std::vector<FactorValue> levels_between(const std::string& name, const Range& range) {
  std::vector<FactorValue> levels;
  const bool ratios = range.low > 0.0 && range.high / range.low >= 8.0;
  for (std::size_t i = 0; i < kMostLevels; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(kMostLevels - 1);
    double level = ratios ? range.low * std::pow(range.high / range.low, share)
                          : range.low + share * (range.high - range.low);
    if (i > 0 && i + 1 < kMostLevels) {
      level = name == "message_bytes" && level > 2 ? std::exp2(std::round(std::log2(level)))
                                                   : std::round(level);
    }
    if (levels.empty() || std::get<double>(levels.back()) < level) levels.emplace_back(level);
  }
  return levels;
}

}  // namespace

Result<Campaign> campaign_for(const Model& model, std::uint64_t budget) {
  const auto* fitted = dynamic_cast<const PipelineModel*>(&model);
  if (fitted == nullptr) {
    return fail(ErrorCode::kBadInput,
                fmt::format("the model's law is '{}'; a design needs one of the law 'pipeline'",
                            model.law()));
  }
  const PipelineState& state = fitted->state();
  Campaign campaign;
  campaign.name = "for_model";
  campaign.design.kind = DesignKind::kModel;
  campaign.design.law = "pipeline";
  campaign.design.count = budget;
  campaign.wall.metric = measure::kBandwidth;
  campaign.wall.below_baseline_by = 0.2;
  for (const auto& [name, range] : state.domain.numeric) {
    Factor factor{.name = name, .type = FactorType::kNumeric};
    factor.levels = levels_between(name, range);
    campaign.baseline.set(name, factor.levels.front());
    if (factor.levels.size() > 1) campaign.factors.push_back(std::move(factor));
  }
  for (const auto& [name, levels] : state.domain.categories) {
    Factor factor{.name = name, .type = FactorType::kCategorical};
    for (const std::string& level : levels) factor.levels.emplace_back(level);
    const FactorInfo* info = find_factor(name);
    if (info != nullptr && info->type == FactorType::kBool) continue;
    campaign.baseline.set(name, factor.levels.front());
    if (factor.levels.size() > 1) campaign.factors.push_back(std::move(factor));
  }
  if (campaign.factors.empty()) {
    return fail(ErrorCode::kBadInput,
                "nothing varied in what the model was fitted to, so there is nothing to choose");
  }
  // Levels that never varied are measured as they were.
  nlohmann::json factors = nlohmann::json::object();
  nlohmann::json baseline = nlohmann::json::object();
  const auto json_of = [](const FactorValue& value) -> nlohmann::json {
    if (const double* number = std::get_if<double>(&value)) return *number;
    return to_string(value);
  };
  for (const auto& [name, value] : campaign.baseline.levels()) {
    baseline[name] = json_of(value);
    if (campaign.find(name) != nullptr) continue;
    const FactorInfo* info = find_factor(name);
    campaign.factors.push_back({.name = name,
                                .type = info != nullptr ? info->type : FactorType::kNumeric,
                                .levels = {value}});
  }
  for (const Factor& factor : campaign.factors) {
    nlohmann::json levels = nlohmann::json::array();
    for (const FactorValue& level : factor.levels) levels.push_back(json_of(level));
    factors[factor.name] = {
        {"type", factor.type == FactorType::kNumeric ? "numeric" : "categorical"},
        {"levels", levels}};
  }
  campaign.text =
      nlohmann::json{{"version", 1},
                     {"name", campaign.name},
                     {"factors", factors},
                     {"design", {{"model", "pipeline"}, {"budget", budget}}},
                     {"baseline", baseline},
                     {"wall", {{"metric", campaign.wall.metric}, {"below_baseline_by", 0.2}}},
                     {"measure", {{"repeats", campaign.measure.repeats}, {"seconds", 1}}}}
          .dump(1);
  campaign.source = "the model's domain";
  return campaign;
}

}  // namespace greynic::model
