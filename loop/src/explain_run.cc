#include "greynic/loop/explain_run.h"

#include "greynic/campaign/laboratory.h"
#include "greynic/campaign/mask_target.h"
#include "greynic/files/campaign_file.h"
#include "greynic/target/interrupt.h"
#include "greynic/testgen/compiled_campaign.h"

namespace greynic::loop {
namespace {

/// The campaign as it was run: its own overrides applied, its baseline completed.
struct RunCampaign {
  Campaign campaign;
  testgen::CompiledCampaign compiled;
};

Result<RunCampaign> campaign_of(const results::RunStore& store) {
  auto campaign = store.campaign();
  if (!campaign) return pass_on(campaign);
  auto compiled = testgen::CompiledCampaign::create(*campaign);
  if (!compiled) return pass_on(compiled);
  auto baseline = compiled->complete_baseline();
  if (!baseline) return pass_on(baseline);
  campaign->baseline = std::move(*baseline);
  return RunCampaign{std::move(*campaign), std::move(*compiled)};
}

}  // namespace

Result<causal::Explanation> explain_stored(const results::RunStore& store,
                                           const causal::ExplainOptions& options) {
  auto run = campaign_of(store);
  if (!run) return pass_on(run);
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  auto ordered = campaign::Laboratory::ordered(store);
  if (!ordered) return pass_on(ordered);
  causal::ExplainOptions judged = options;
  judged.ordered = std::move(*ordered);
  return causal::explain(run->campaign, *observations, judged);
}

Result<causal::Explanation> explain_on(target::Target& device, results::RunStore& store,
                                       const causal::ExplainOptions& options, const Talk& talk) {
  auto run = campaign_of(store);
  if (!run) return pass_on(run);
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  campaign::RunOptions run_options;
  run_options.duration = run->campaign.measure.duration;
  run_options.metrics = run->campaign.measure.metrics;
  run_options.seed = store.header().seed;
  auto tests = campaign::Laboratory::create(device, store, run_options);
  if (!tests) return pass_on(tests);
  causal::ExplainOptions judged = options;
  auto ordered = campaign::Laboratory::ordered(store);
  if (!ordered) return pass_on(ordered);
  judged.ordered = std::move(*ordered);
  causal::Laboratory laboratory;
  laboratory.measure = [&](const Configuration& configuration, int count) {
    return tests->measure(configuration, count);
  };
  laboratory.complete = [&](const Configuration& levels) -> std::optional<Configuration> {
    auto whole = run->compiled.complete(levels, "a test");
    return whole ? std::optional(std::move(*whole)) : std::nullopt;
  };
  laboratory.progress = [&](std::size_t done, const std::string& what) {
    talk.show("explaining", static_cast<double>(done), static_cast<double>(options.most_tests),
              what);
  };
  auto explanation = causal::explain(run->campaign, *observations, judged, &laboratory);
  if (!explanation) return explanation;
  if (auto kept = store.keep(results::kExplanation, causal::to_json_text(*explanation)); !kept) {
    return pass_on(kept);
  }
  return explanation;
}

Result<causal::Explanation> explain_file(const std::string& run, const std::string& target,
                                         const causal::ExplainOptions& options, const Talk& talk) {
  auto reading = results::RunStore::open_to_read(run);
  if (!reading) return pass_on(reading);
  if (target.empty()) {
    auto explanation = explain_stored(*reading, options);
    if (!explanation) return explanation;
    // For the report. A run that cannot be written is explained all the same.
    auto kept = reading->keep(results::kHypotheses, causal::to_json_text(*explanation));
    if (!kept) talk.line("not kept with the run: " + kept.error().message);
    return explanation;
  }
  auto device = target::open(target);
  if (!device) return pass_on(device);
  auto store = results::RunStore::open_to_append(run, reading->header());
  if (!store) return pass_on(store);
  const auto campaign = store->campaign();
  if (!campaign) return pass_on(campaign);
  auto ready = campaign::with_masks(std::move(*device), *campaign);
  if (!ready) return pass_on(ready);
  const target::InterruptGuard guard;
  return explain_on(**ready, *store, options, talk);
}

}  // namespace greynic::loop
