#include "explaining.h"

#include <fmt/core.h>

#include "greynic/campaign/laboratory.h"
#include "greynic/files/campaign_file.h"
#include "greynic/testgen/campaign_model.h"
#include "progress.h"

namespace greynic::cli {
namespace {

/// The campaign as it was run: its own overrides applied, its baseline completed.
Result<Campaign> campaign_of(const results::RunStore& store) {
  auto campaign = store.campaign();
  if (!campaign) return campaign;
  auto baseline = testgen::complete(*campaign, campaign->baseline, "the baseline");
  if (!baseline) return pass_on(baseline);
  campaign->baseline = std::move(*baseline);
  return campaign;
}

}  // namespace

Result<causal::Explanation> explain_stored(const results::RunStore& store,
                                           const causal::ExplainOptions& options) {
  auto campaign = campaign_of(store);
  if (!campaign) return pass_on(campaign);
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  auto ordered = campaign::Laboratory::ordered(store);
  if (!ordered) return pass_on(ordered);
  causal::ExplainOptions judged = options;
  judged.ordered = std::move(*ordered);
  return causal::explain(*campaign, *observations, judged);
}

Result<causal::Explanation> explain_on(target::Target& device, results::RunStore& store,
                                       const causal::ExplainOptions& options) {
  auto campaign = campaign_of(store);
  if (!campaign) return pass_on(campaign);
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  campaign::RunOptions run_options;
  run_options.duration = campaign->measure.duration;
  run_options.metrics = campaign->measure.metrics;
  run_options.seed = store.header().seed;
  auto tests = campaign::Laboratory::create(device, store, run_options);
  if (!tests) return pass_on(tests);
  causal::ExplainOptions judged = options;
  auto ordered = campaign::Laboratory::ordered(store);
  if (!ordered) return pass_on(ordered);
  judged.ordered = std::move(*ordered);
  Progress progress("explaining", static_cast<double>(options.most_tests));
  causal::Laboratory laboratory;
  laboratory.measure = [&](const Configuration& configuration, int count) {
    return tests->measure(configuration, count);
  };
  laboratory.complete = [&](const Configuration& levels) -> std::optional<Configuration> {
    auto whole = testgen::complete(*campaign, levels, "a test");
    return whole ? std::optional(std::move(*whole)) : std::nullopt;
  };
  laboratory.progress = [&](std::size_t done, const std::string& what) {
    progress.update(static_cast<double>(done), what);
  };
  auto explanation = causal::explain(*campaign, *observations, judged, &laboratory);
  if (!explanation) return explanation;
  if (auto kept = store.keep(results::kExplanation, causal::to_json_text(*explanation)); !kept) {
    return pass_on(kept);
  }
  return explanation;
}

}  // namespace greynic::cli
