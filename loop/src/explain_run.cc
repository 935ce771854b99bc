#include "greynic/loop/explain_run.h"

#include <fmt/core.h>

#include <filesystem>
#include <tuple>

#include "explain_input.h"
#include "greynic/campaign/job.h"
#include "greynic/campaign/laboratory.h"
#include "greynic/campaign/mask_target.h"
#include "greynic/files/campaign_file.h"
#include "greynic/loop/counter_notes.h"
#include "greynic/target/interrupt.h"
#include "greynic/target/resettable.h"
#include "greynic/testgen/compiled_campaign.h"
#include "greynic/testgen/plan.h"

namespace greynic::loop {
namespace {

constexpr double kPatience = 100.0;  // for a small plan: each of its rows is a test

/// The campaign as it was run: its own overrides applied, its baseline completed.
struct RunCampaign {
  Campaign campaign;
  testgen::CompiledCampaign compiled;
};

Result<RunCampaign> compiled_campaign(Campaign campaign) {
  auto compiled = testgen::CompiledCampaign::create(campaign);
  if (!compiled) return pass_on(compiled);
  auto baseline = compiled->complete_baseline();
  if (!baseline) return pass_on(baseline);
  campaign.baseline = std::move(*baseline);
  return RunCampaign{std::move(campaign), std::move(*compiled)};
}

/// With the request's own baseline and witness, where it has them.
Result<RunCampaign> campaign_for(Campaign campaign, const ExplainRequest& request,
                                 causal::ExplainOptions& options) {
  if (!request.baseline.empty()) {
    auto baseline = read_levels(campaign, request.baseline);
    if (!baseline) return pass_on(baseline);
    for (const auto& [name, level] : baseline->levels()) campaign.baseline.set(name, level);
  }
  auto run = compiled_campaign(std::move(campaign));
  if (!run) {
    return request.baseline.empty() ? Result<RunCampaign>(pass_on(run))
                                    : run.error().while_doing(request.baseline);
  }
  if (request.witness.empty()) return run;
  auto witness = read_levels(run->campaign, request.witness);
  if (!witness) return pass_on(witness);
  auto whole = run->compiled.complete(*witness, "the witness");
  if (!whole) return whole.error().while_doing(request.witness);
  options.witness = std::move(*whole);
  return run;
}

/// What the engine may ask of the run's campaign and of its device.
causal::Laboratory laboratory_of(RunCampaign& run, target::Target& device,
                                 campaign::Laboratory& tests, const Talk& talk,
                                 std::size_t most_tests) {
  causal::Laboratory laboratory;
  laboratory.measure = [&](std::span<const Configuration> wanted) { return tests.measure(wanted); };
  laboratory.complete = [&](const Configuration& levels) -> std::optional<Configuration> {
    auto whole = run.compiled.complete(levels, "a test");
    return whole ? std::optional(std::move(*whole)) : std::nullopt;
  };
  laboratory.allows = [&](const Configuration& whole) { return run.compiled.allows(whole); };
  laboratory.plan = [&]() -> Result<std::vector<Configuration>> {
    testgen::PlanOptions options;
    options.patience = kPatience;
    options.progress = [&talk](double share, std::size_t rows) {
      talk.show("planning", share, 1.0, fmt::format("{} configurations", rows));
    };
    auto plan = testgen::make_plan(run.campaign, options);
    if (!plan) return pass_on(plan);
    return std::move(plan->configurations);
  };
  laboratory.progress = [&talk, most_tests](std::size_t done, const std::string& what) {
    talk.show("explaining", static_cast<double>(done), static_cast<double>(most_tests), what);
  };
  if (auto* resettable = dynamic_cast<target::Resettable*>(&device)) {
    laboratory.reset = [resettable] { return resettable->reset(); };
  }
  return laboratory;
}

void add_counters(causal::Explanation& explanation, std::span<const Observation> observations) {
  for (std::string& note : counter_notes(explanation, observations)) {
    explanation.notes.push_back(std::move(note));
  }
}

Result<causal::Explanation> explain_with(target::Target& device, results::RunStore& store,
                                         RunCampaign& run,
                                         std::span<const Observation> observations,
                                         const causal::ExplainOptions& options, const Talk& talk) {
  campaign::RunOptions run_options;
  run_options.duration = run.campaign.measure.duration;
  run_options.metrics = run.campaign.measure.metrics;
  run_options.seed = store.header().seed;
  auto tests = campaign::Laboratory::create(device, store, run_options);
  if (!tests) return pass_on(tests);
  causal::ExplainOptions judged = options;
  auto ordered = campaign::Laboratory::ordered(store);
  if (!ordered) return pass_on(ordered);
  judged.ordered = std::move(*ordered);
  const causal::Laboratory laboratory =
      laboratory_of(run, device, *tests, talk, options.most_tests);
  auto explanation = causal::explain(run.campaign, observations, judged, &laboratory);
  if (!explanation) return explanation;
  add_counters(*explanation, observations);
  if (auto kept = store.keep(results::kExplanation, causal::to_json_text(*explanation)); !kept) {
    return pass_on(kept);
  }
  return explanation;
}

struct StoredRun {
  RunCampaign run;
  std::vector<Observation> observations;
};

Result<StoredRun> stored_run(const results::RunStore& store, const ExplainRequest& request,
                             causal::ExplainOptions& options) {
  auto campaign = store.campaign();
  if (!campaign) return pass_on(campaign);
  auto run = campaign_for(std::move(*campaign), request, options);
  if (!run) return pass_on(run);
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  return StoredRun{std::move(*run), std::move(*observations)};
}

Result<causal::Explanation> explain_stored(const results::RunStore& store,
                                           const ExplainRequest& request) {
  causal::ExplainOptions options = request.options;
  auto stored = stored_run(store, request, options);
  if (!stored) return pass_on(stored);
  auto ordered = campaign::Laboratory::ordered(store);
  if (!ordered) return pass_on(ordered);
  options.ordered = std::move(*ordered);
  auto explanation = causal::explain(stored->run.campaign, stored->observations, options);
  if (explanation) add_counters(*explanation, stored->observations);
  return explanation;
}

Result<causal::Explanation> explain_store(target::Target& device, results::RunStore& store,
                                          const ExplainRequest& request, const Talk& talk) {
  causal::ExplainOptions options = request.options;
  auto stored = stored_run(store, request, options);
  if (!stored) return pass_on(stored);
  return explain_with(device, store, stored->run, stored->observations, options, talk);
}

struct CampaignLog {
  std::vector<Observation> observations;
  bool keeps = false;  ///< what is tested now
};

/// A log of this very question is gone on with: who was killed, or wants to be surer, loses no test
/// to a folder that goes. Any other log is evidence, and stays as it is.
Result<CampaignLog> read_log(const Campaign& campaign, const std::string& path,
                             const results::RunHeader& header) {
  CampaignLog log;
  log.keeps = !path.empty();
  if (path.empty() || !std::filesystem::exists(path)) return log;
  const auto blank = results::RunStore::is_blank(path);
  if (!blank) return pass_on(blank);
  if (*blank) return log;
  auto read = observations_of(campaign, path);
  if (!read) return pass_on(read);
  log.observations = std::move(*read);
  const auto store = results::RunStore::open_to_read(path);
  if (!store) return pass_on(store);
  const auto question = [](const results::RunHeader& of) {
    return std::tie(of.campaign_text, of.campaign_name, of.target, of.seed, of.settings);
  };
  log.keeps = question(store->header()) == question(header);
  return log;
}

/// A campaign that was not run: its tests are kept in the log, or with the program's temporary
/// files while it runs.
Result<causal::Explanation> explain_campaign(const ExplainRequest& request, const Talk& talk) {
  if (request.target.empty()) {
    return fail(ErrorCode::kBadInput,
                request.file +
                    ": a campaign holds no observations; name the device to ask with "
                    "--target, or give a run");
  }
  auto campaign = files::read_campaign(request.file);
  if (!campaign) return pass_on(campaign);
  auto device = target::open(request.target);
  if (!device) return pass_on(device);
  const target::Info info = (*device)->info();
  if (auto known = campaign::check_factors(*campaign, info); !known) return pass_on(known);
  causal::ExplainOptions options = request.options;
  results::RunHeader header;
  header.campaign_text = campaign->text;
  header.campaign_name = campaign->name;
  header.target = request.target;
  header.seed = request.seed;
  header.environment = info.environment;
  const auto log = read_log(*campaign, request.log, header);
  if (!log) return pass_on(log);
  auto run = campaign_for(std::move(*campaign), request, options);
  if (!run) return pass_on(run);
  auto ready = campaign::with_masks(std::move(*device), run->campaign);
  if (!ready) return pass_on(ready);
  const TemporaryFolder folder;
  const std::string path = log->keeps ? request.log : folder.path() + "/run.db";
  auto store = results::RunStore::open_to_append(path, header);
  if (!store) return pass_on(store);
  const target::InterruptGuard guard;
  return explain_with(**ready, *store, *run, log->observations, options, talk);
}

}  // namespace

Result<causal::Explanation> explain_on(target::Target& device, results::RunStore& store,
                                       const causal::ExplainOptions& options, const Talk& talk) {
  ExplainRequest request;
  request.options = options;
  return explain_store(device, store, request, talk);
}

Result<causal::Explanation> explain_file(const ExplainRequest& request, const Talk& talk) {
  if (is_json(request.file)) return explain_campaign(request, talk);
  auto reading = results::RunStore::open_to_read(request.file);
  if (!reading) return pass_on(reading);
  if (request.target.empty()) {
    auto explanation = explain_stored(*reading, request);
    if (!explanation) return explanation;
    // For the report. A run that cannot be written is explained all the same.
    auto kept = reading->keep(results::kHypotheses, causal::to_json_text(*explanation));
    if (!kept) talk.line("not kept with the run: " + kept.error().message);
    return explanation;
  }
  auto device = target::open(request.target);
  if (!device) return pass_on(device);
  auto store = results::RunStore::open_to_append(request.file, reading->header());
  if (!store) return pass_on(store);
  const auto campaign = store->campaign();
  if (!campaign) return pass_on(campaign);
  auto ready = campaign::with_masks(std::move(*device), *campaign);
  if (!ready) return pass_on(ready);
  const target::InterruptGuard guard;
  return explain_store(**ready, *store, request, talk);
}

}  // namespace greynic::loop
