#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "greynic/files/campaign_file.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "greynic/testgen/plan.h"

namespace greynic::testgen {

namespace {

using nlohmann::json;

json size_to_json(const SpaceSize& size) {
  if (!std::isfinite(size.log10)) return {{"log10", nullptr}, {"text", "none"}, {"exact", true}};
  json out = {{"log10", size.log10}, {"text", describe(size)}, {"exact", size.exact}};
  if (!size.exact) {
    out["log10_low"] = size.log10_low;
    out["log10_high"] = size.log10_high;
  }
  return out;
}

SpaceSize size_from_json(const json& value) {
  SpaceSize size;
  size.exact = value.at("exact").get<bool>();
  size.log10 = value.at("log10").is_null() ? -std::numeric_limits<double>::infinity()
                                           : value.at("log10").get<double>();
  size.log10_low = value.value("log10_low", size.log10);
  size.log10_high = value.value("log10_high", size.log10);
  return size;
}

json report_to_json(const SpaceReport& report) {
  return {{"raw", size_to_json(report.raw)},
          {"after_topology", size_to_json(report.after_topology)},
          {"after_constraints", size_to_json(report.after_constraints)},
          {"kept", report.kept},
          {"lower_bound", report.lower_bound},
          {"lower_bound_reason", report.lower_bound_reason},
          {"tuples_covered", report.tuples_covered},
          {"tuples_infeasible", report.tuples_infeasible},
          {"generation_seconds", report.generation_seconds},
          {"target_seconds", report.target_seconds ? json(*report.target_seconds) : json(nullptr)},
          {"notes", report.notes}};
}

SpaceReport report_from_json(const json& value) {
  SpaceReport report;
  report.raw = size_from_json(value.at("raw"));
  report.after_topology = size_from_json(value.at("after_topology"));
  report.after_constraints = size_from_json(value.at("after_constraints"));
  report.kept = value.at("kept").get<std::size_t>();
  report.lower_bound = value.at("lower_bound").get<std::size_t>();
  report.lower_bound_reason = value.at("lower_bound_reason").get<std::string>();
  report.tuples_covered = value.at("tuples_covered").get<std::uint64_t>();
  report.tuples_infeasible = value.at("tuples_infeasible").get<std::uint64_t>();
  report.generation_seconds = value.at("generation_seconds").get<double>();
  if (!value.at("target_seconds").is_null()) {
    report.target_seconds = value.at("target_seconds").get<double>();
  }
  report.notes = value.at("notes").get<std::vector<std::string>>();
  return report;
}

/// Whether the campaign could have planned it. Factors with a dot are of its topology, which is not
/// read here.
Result<void> check_planned(const Configuration& configuration, const Campaign& campaign,
                           const std::string& path, const std::string& here) {
  for (const auto& [name, level] : configuration.levels()) {
    const Factor* factor = campaign.find(name);
    if (factor == nullptr && !campaign.topology.empty() && name.find('.') != std::string::npos) {
      continue;
    }
    if (factor == nullptr) {
      return files::bad_value(path, here, fmt::format("'{}' is no factor of the campaign", name));
    }
    if (std::find(factor->levels.begin(), factor->levels.end(), level) == factor->levels.end()) {
      return files::bad_value(
          path, here + "/" + name,
          fmt::format("{} is no level of the campaign; plan again", to_string(level)));
    }
  }
  for (const Factor& factor : campaign.factors) {
    if (factor.only_if.empty() && configuration.find(factor.name) == nullptr) {
      return files::bad_value(path, here, fmt::format("'{}' is missing", factor.name));
    }
  }
  return {};
}

}  // namespace

std::string plan_to_json_text(const Plan& plan) {
  json configurations = json::array();
  for (const Configuration& configuration : plan.configurations) {
    configurations.push_back(files::to_json(configuration));
  }
  const json document = {{"version", 1},
                         {"campaign", plan.campaign.name},
                         {"campaign_source", plan.campaign.source},
                         {"campaign_text", plan.campaign.text},
                         {"set", plan.overrides},
                         {"seed", plan.seed},
                         {"report", report_to_json(plan.report)},
                         {"configurations", std::move(configurations)}};
  return files::json_text(document, 1) + "\n";
}

Result<void> write_plan(const Plan& plan, const std::string& path) {
  return files::write_text(path, plan_to_json_text(plan));
}

Result<Plan> read_plan(const std::string& path) {
  auto document = files::read_json(path, "plan");
  if (!document) return pass_on(document);
  Plan plan;
  const std::string source = document->at("campaign_source").get<std::string>();
  auto campaign = files::parse_campaign(document->at("campaign_text").get<std::string>(), source);
  if (!campaign) {
    return campaign.error().while_doing(fmt::format("{}: at /campaign_text", path));
  }
  plan.overrides = document->at("set").get<std::vector<std::string>>();
  auto overridden = files::override_levels(std::move(*campaign), plan.overrides);
  if (!overridden) return overridden.error().while_doing(fmt::format("{}: at /set", path));
  plan.campaign = std::move(*overridden);
  plan.seed = document->at("seed").get<std::uint64_t>();
  plan.report = report_from_json(document->at("report"));
  const json& configurations = document->at("configurations");
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    auto configuration = files::configuration_from_json(configurations[i], path,
                                                        fmt::format("/configurations/{}", i));
    if (!configuration) return pass_on(configuration);
    // The first is the baseline, which may have levels of its own.
    if (i > 0) {
      const auto planned =
          check_planned(*configuration, plan.campaign, path, fmt::format("/configurations/{}", i));
      if (!planned) return pass_on(planned);
    }
    plan.configurations.push_back(std::move(*configuration));
  }
  // make_plan completes the baseline and puts it first; so does a plan that was read.
  plan.campaign.baseline = plan.configurations.front();
  return plan;
}

}  // namespace greynic::testgen
