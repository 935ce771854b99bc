#include "greynic/campaign/job.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "greynic/campaign/mask_target.h"
#include "greynic/core/text.h"
#include "greynic/core/units.h"
#include "greynic/files/campaign_file.h"
#include "greynic/files/json_file.h"
#include "greynic/testgen/campaign_model.h"

namespace greynic::campaign {
namespace {

/// A plan holds the campaign's text, a campaign its factors.
Result<bool> is_plan(const std::string& path) {
  auto text = files::read_text(path);
  if (!text) return pass_on(text);
  auto document = files::parse_json(*text, path);
  if (!document) return pass_on(document);
  return document->is_object() &&
         (document->contains("campaign_text") || document->contains("configurations"));
}

testgen::DeviceLimits limits_of(const target::Info& info) {
  return {.target = info.name,
          .largest = info.limits,
          .categories = info.categories,
          .seconds_per_test = info.seconds_per_test,
          .virtual_time = info.virtual_time};
}

Result<testgen::Plan> plan_of(const Job& job, const target::Info& info) {
  const auto plan_file = is_plan(job.file);
  if (!plan_file) return pass_on(plan_file);
  if (*plan_file) {
    if (!job.overrides.empty()) {
      return fail(
          ErrorCode::kBadInput,
          job.file + ": a plan is fixed; give --set to `greynic plan`, or run the campaign");
    }
    if (job.plan_seed) {
      return fail(ErrorCode::kBadInput,
                  job.file +
                      ": a plan is fixed; give the seed to `greynic plan`, and "
                      "--measure-seed here");
    }
    return testgen::read_plan(job.file);
  }
  auto campaign = files::read_campaign(job.file);
  if (!campaign) return pass_on(campaign);
  auto overridden = files::override_levels(std::move(*campaign), job.overrides);
  if (!overridden) return pass_on(overridden);
  // Before the planning, which may take its time.
  if (auto known = check_factors(*overridden, info); !known) return pass_on(known);
  testgen::PlanOptions options;
  options.seed = job.seed_of_plan();
  options.threads = job.threads;
  options.device = limits_of(info);
  options.overrides = job.overrides;
  options.model_design = job.model_design;
  options.progress = job.progress;
  return testgen::make_plan(*overridden, options);
}

/// The seed of the plan was chosen apart from that of the measurements.
bool has_two_seeds(const Job& job, const testgen::Plan& plan) {
  return (job.plan_seed || job.measure_seed) && plan.seed != job.seed_of_measurements();
}

/// Tells one plan from another: a resumed run must measure the very same configurations.
std::string digest(std::span<const Configuration> configurations) {
  std::uint64_t sum = 0;
  for (const Configuration& configuration : configurations) {
    sum = request_seed(sum, configuration, 0);
  }
  return fmt::format("{} configurations, {:016x}", configurations.size(), sum);
}

std::string levels_of(const Factor& factor) {
  std::string text;
  for (const FactorValue& level : factor.levels) {
    text += (text.empty() ? "" : ", ") + to_string(level);
  }
  if (!factor.only_if.empty()) text += "  if " + factor.only_if;
  return text;
}

std::string name_of(const Design& design) {
  switch (design.kind) {
    case DesignKind::kFull:
      return "full";
    case DesignKind::kCovering:
      return fmt::format("{}-way", design.strength);
    case DesignKind::kRandom:
      return fmt::format("random {}", design.count);
    case DesignKind::kPoints:
      return fmt::format("{} points", design.points.size());
    case DesignKind::kModel:
      return fmt::format("model {}, budget {}", design.law, design.count);
  }
  return {};
}

std::string text_of(const WallRule& wall) {
  if (wall.below_baseline_by) {
    return fmt::format("{} below the baseline by {:g} % or more", wall.metric,
                       *wall.below_baseline_by * 100);
  }
  if (wall.above_baseline_by) {
    return fmt::format("{} above the baseline by {:g} % or more", wall.metric,
                       *wall.above_baseline_by * 100);
  }
  if (wall.below) return fmt::format("{} below {:g}", wall.metric, *wall.below);
  if (wall.above) return fmt::format("{} above {:g}", wall.metric, *wall.above);
  return "none";
}

void describe(const Job& job, Prepared& prepared) {
  const Campaign& campaign = prepared.plan.campaign;
  auto& settings = prepared.settings;
  settings = {{"campaign", fmt::format("{} ({})", campaign.name, job.file)},
              {"target", fmt::format("{}: {}", prepared.info.name, prepared.info.description)},
              {"design", name_of(campaign.design)},
              {"plan", digest(prepared.plan.configurations)}};
  if (has_two_seeds(job, prepared.plan)) {
    settings.emplace_back("seed of the plan", std::to_string(prepared.plan.seed));
    settings.emplace_back("seed of the measurements", std::to_string(job.seed_of_measurements()));
  } else {
    settings.emplace_back("seed", std::to_string(job.seed_of_measurements()));
  }
  for (const Factor& factor : campaign.factors) {
    settings.emplace_back("factor " + factor.name, levels_of(factor));
  }
  for (const std::string& constraint : campaign.constraints) {
    settings.emplace_back("constraint", constraint);
  }
  if (!campaign.topology.empty()) settings.emplace_back("topology", campaign.topology);
  settings.emplace_back("baseline", campaign.baseline.name());
  settings.emplace_back("wall", text_of(campaign.wall));
  settings.emplace_back("repeats", std::to_string(campaign.measure.repeats));
  settings.emplace_back("time of one test", to_string(campaign.measure.duration));
  if (!campaign.measure.metrics.empty()) {
    settings.emplace_back("measures kept",
                          fmt::format("{}", fmt::join(campaign.measure.metrics, ", ")));
  }
  settings.emplace_back("planning threads", std::to_string(job.threads));
  for (const auto& [name, value] : prepared.info.environment) settings.emplace_back(name, value);
  settings.emplace_back("output", prepared.out);
}

results::RunHeader header_of(const Job& job, const Prepared& prepared) {
  const Campaign& campaign = prepared.plan.campaign;
  results::RunHeader header;
  header.campaign_text = campaign.text;
  header.campaign_name = campaign.name;
  header.target = job.target;
  header.seed = job.seed_of_measurements();
  header.command = job.command;
  header.environment = prepared.info.environment;
  if (!campaign.topology.empty()) {
    header.environment[results::kTopologyFile] = testgen::topology_path(campaign);
  }
  header.settings = {
      {"measure.repeats", std::to_string(campaign.measure.repeats)},
      {"measure.seconds",
       number_to_string(std::chrono::duration<double>(campaign.measure.duration).count())},
      {"plan", digest(prepared.plan.configurations)}};
  // A run with one seed for both has no such setting.
  if (has_two_seeds(job, prepared.plan)) {
    header.settings["plan.seed"] = std::to_string(prepared.plan.seed);
  }
  for (const std::string& text : prepared.plan.overrides) {
    const std::size_t equals = text.find('=');
    header.settings["set." + text.substr(0, equals)] = text.substr(equals + 1);
  }
  return header;
}

}  // namespace

std::string default_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::string part = shortened(name, 100);
  // A name is no path: it leads to no other folder.
  const auto steers = [](char c) { return c == '/' || static_cast<unsigned char>(c) < ' '; };
  std::ranges::replace_if(part, steers, '-');
  return fmt::format("results/{:%Y-%m-%d}-{}", local, part);
}

Result<Prepared> prepare(const Job& job) {
  auto device = target::open(job.target);
  if (!device) return pass_on(device);
  Prepared prepared;
  prepared.device = std::move(*device);
  prepared.info = prepared.device->info();
  auto plan = plan_of(job, prepared.info);
  if (!plan) return pass_on(plan);
  prepared.plan = std::move(*plan);
  if (auto known = check_factors(prepared.plan.campaign, prepared.info); !known) {
    return pass_on(known);
  }
  auto ready = with_masks(std::move(prepared.device), prepared.plan.campaign);
  if (!ready) return pass_on(ready);
  prepared.device = std::move(*ready);
  prepared.out =
      job.out.empty() ? default_folder(prepared.plan.campaign.name) + "/run.db" : job.out;
  prepared.header = header_of(job, prepared);
  describe(job, prepared);
  return prepared;
}

Result<results::RunStore> start(const Prepared& prepared) {
  const auto folder = std::filesystem::path(prepared.out).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  }
  auto store = results::RunStore::open_to_append(prepared.out, prepared.header);
  if (!store) return store;
  auto kept = store->kept("plan");
  if (!kept) return pass_on(kept);
  if (kept->empty()) {
    if (auto done = store->keep("plan", testgen::plan_to_json_text(prepared.plan)); !done) {
      return pass_on(done);
    }
  }
  return store;
}

RunOptions options_of(const Prepared& prepared) {
  const MeasurePlan& measure = prepared.plan.campaign.measure;
  RunOptions options;
  options.repeats = measure.repeats;
  options.duration = measure.duration;
  options.metrics = measure.metrics;
  options.seed = prepared.header.seed;
  return options;
}

}  // namespace greynic::campaign
