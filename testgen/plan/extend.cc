#include "greynic/testgen/extend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "greynic/files/json_file.h"

namespace greynic::testgen {

namespace {

constexpr std::size_t kMostFactorsOfACause = 5;  // with one more they make an order of six

/// The cause's factors with each other factor of the campaign, at an order that covers them all.
void add_groups(const std::vector<std::string>& cause, Campaign& campaign) {
  for (const Factor& factor : campaign.factors) {
    if (std::find(cause.begin(), cause.end(), factor.name) != cause.end()) continue;
    StrengthGroup group;
    group.factors = cause;
    group.factors.push_back(factor.name);
    group.strength = static_cast<int>(group.factors.size());
    campaign.design.groups.push_back(std::move(group));
  }
}

}  // namespace

Result<std::vector<std::vector<std::string>>> factors_of_causes(
    const std::string& explanation_json) {
  const std::string source = "the run's explanation";
  const auto document = files::parse_json(explanation_json, source);
  if (!document) return pass_on(document);
  std::set<std::vector<std::string>> causes;
  if (!document->is_object() || !document->contains("causes") ||
      !(*document)["causes"].is_array()) {
    return files::bad_value(source, "/causes", "a list expected");
  }
  for (const nlohmann::json& cause : (*document)["causes"]) {
    std::set<std::string> factors;
    // Version 1 of the explanation called the terms all_of.
    const char* const terms = cause.contains("terms") ? "terms" : "all_of";
    for (const nlohmann::json& term : cause.value(terms, nlohmann::json::array())) {
      if (!term.is_object() || !term.contains("factor") || !term["factor"].is_string()) {
        return files::bad_value(source, "/causes", "a term without a factor");
      }
      factors.insert(term["factor"].get<std::string>());
      for (const nlohmann::json& of_sum : term.value("factors", nlohmann::json::array())) {
        factors.insert(of_sum.get<std::string>());
      }
    }
    if (!factors.empty()) causes.emplace(factors.begin(), factors.end());
  }
  return std::vector<std::vector<std::string>>(causes.begin(), causes.end());
}

Result<Plan> extend_plan(const Campaign& campaign, std::span<const Observation> observations,
                         const std::vector<std::vector<std::string>>& causes,
                         const PlanOptions& options) {
  Campaign further = campaign;
  if (further.design.kind != DesignKind::kCovering) {
    further.design = Design{};
  }
  std::vector<std::string> notes;
  for (const std::vector<std::string>& cause : causes) {
    const bool known = std::all_of(cause.begin(), cause.end(), [&](const std::string& name) {
      return campaign.find(name) != nullptr;
    });
    if (!known || cause.empty() || cause.size() > kMostFactorsOfACause) {
      notes.push_back(fmt::format("left out the cause of {}: {}", fmt::join(cause, ", "),
                                  known ? "too many factors" : "not factors of the campaign"));
      continue;
    }
    add_groups(cause, further);
  }
  PlanOptions covering = options;
  std::set<std::string> measured;
  std::set<std::string> refused;
  for (const Observation& observation : observations) {
    auto& names = observation.outcome == Outcome::kMeasured ? measured : refused;
    if (!names.insert(observation.asked.name()).second) continue;
    if (observation.outcome == Outcome::kMeasured) {
      covering.already_run.push_back(observation.asked);
    }
  }
  for (const Observation& observation : observations) {
    const std::string name = observation.asked.name();
    if (measured.contains(name) || refused.erase(name) == 0) continue;
    // Not the same again: only other configurations can tell which of its levels are to blame.
    if (observation.asked != campaign.baseline) further.forbidden.push_back(observation.asked);
  }
  further.seeds.clear();  // they were run
  auto plan = make_plan(further, covering);
  if (!plan) return plan;
  std::erase_if(plan->configurations, [&](const Configuration& configuration) {
    return configuration != plan->campaign.baseline && measured.contains(configuration.name());
  });
  plan->report.kept = plan->configurations.size();
  plan->report.notes.insert(plan->report.notes.end(), notes.begin(), notes.end());
  // A run goes on only with the campaign that it began with.
  Configuration baseline = plan->campaign.baseline;
  plan->campaign = campaign;
  plan->campaign.baseline = std::move(baseline);
  return plan;
}

}  // namespace greynic::testgen
