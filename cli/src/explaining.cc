#include "explaining.h"

#include <fmt/format.h>

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
  return causal::explain(*campaign, *observations, options);
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
  Progress progress("explaining", static_cast<double>(options.most_tests));
  causal::Laboratory laboratory;
  laboratory.measure = [&](const Configuration& configuration, int count) {
    return tests->measure(configuration, count);
  };
  laboratory.valid = [&](const Configuration& configuration) {
    const auto whole = testgen::complete(*campaign, configuration, "a test");
    return whole && *whole == configuration;
  };
  laboratory.progress = [&](std::size_t ordered, const std::string& what) {
    progress.update(static_cast<double>(ordered), what);
  };
  auto explanation = causal::explain(*campaign, *observations, options, &laboratory);
  if (!explanation) return explanation;
  if (auto kept = store.keep("explanation", causal::to_json_text(*explanation)); !kept) {
    return pass_on(kept);
  }
  return explanation;
}

}  // namespace greynic::cli
