#include "greynic/causal/explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "causes.h"
#include "explain_tested.h"
#include "greynic/statistics/holm.h"
#include "hypothesis.h"
#include "wall_test.h"

namespace greynic::causal {
namespace {

struct TestedConfiguration {
  Configuration configuration;
  WallTest test;
};

/// Every configuration is a wall, clear, undecided or refused. The correction for their number is
/// part of the decision: what is a wall by itself, but not among so many, is undecided.
std::vector<Configuration> sort_out(const std::vector<TestedConfiguration>& all, double alpha,
                                    Explanation& explanation) {
  std::vector<double> p_values;
  for (const TestedConfiguration& one : all) p_values.push_back(one.test.p_wall);
  const std::vector<double> adjusted = statistics::holm_adjusted(p_values);
  std::vector<Configuration> clear;
  std::size_t too_short = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const WallTest& test = all[i].test;
    too_short += test.too_short ? 1 : 0;
    const bool failed = !test.outcome.empty() && test.decided;
    if (!test.testable && !test.too_short) {
      ++explanation.refused;
    } else if (failed || (test.wall && adjusted[i] <= alpha)) {
      explanation.walls.push_back(
          {all[i].configuration, test.ratio, test.p_wall, test.tests, test.outcome, std::nullopt});
    } else if (test.testable && !test.wall && test.decided) {
      clear.push_back(all[i].configuration);
    } else {
      ++explanation.undecided;
      explanation.undecided_configurations.push_back(all[i].configuration);
    }
  }
  if (too_short > 0) explanation.notes.push_back(too_short_note(too_short));
  return clear;
}

/// Hypotheses, wall by wall, until all are explained or given up.
void find_hypotheses(Explanation& explanation, const Configuration& baseline,
                     const std::vector<Configuration>& clear, const ExplainOptions& options) {
  std::vector<bool> given_up(explanation.walls.size(), false);
  WallsAndClear tested{.walls = {}, .clear = clear};
  for (const Wall& wall : explanation.walls) tested.walls.push_back(wall.configuration);
  std::size_t by_chance = 0;
  while (const auto index = next_wall(explanation.walls, baseline, given_up)) {
    Wall& wall = explanation.walls[*index];
    given_up[*index] = true;
    auto cause = best_hypothesis(baseline, wall.configuration, tested, options.most_terms);
    if (cause && cause->confidence <= 0.0) {
      ++by_chance;
      cause.reset();
    }
    if (!cause) continue;
    cause->severity = wall.ratio;
    assign(explanation.walls, *cause, explanation.causes.size());
    explanation.causes.push_back(std::move(*cause));
  }
  if (by_chance > 0) {
    explanation.notes.push_back(
        fmt::format("{} walls share nothing that chance would not explain as well; measure more "
                    "configurations, or name a device with --target",
                    by_chance));
  }
}

Result<Explanation> explain_stored(const Campaign& campaign, const Configuration& baseline,
                                   std::span<const Observation> observations,
                                   const ExplainOptions& options) {
  const double alpha = 1.0 - options.confidence;
  auto tester = WallTester::create(campaign, baseline, observations, options.confidence);
  if (!tester) return pass_on(tester);
  Explanation explanation = explanation_of(campaign, baseline, options);
  explanation.expected = tester->expected();
  explanation.tests_read = observations.size();
  std::vector<TestedConfiguration> all;
  for (const Configuration& configuration : tester->configurations()) {
    if (options.ordered.contains(configuration.name())) continue;
    if (options.witness && configuration != *options.witness && configuration != baseline) continue;
    all.push_back({configuration, tester->test(configuration, alpha)});
  }
  explanation.configurations = all.size();
  const std::vector<Configuration> clear = sort_out(all, alpha, explanation);
  find_hypotheses(explanation, baseline, clear, options);
  drop_narrower_causes(explanation.causes);
  if (auto done = find_exceptions(explanation, clear, {}); !done) return pass_on(done);
  put_in_order(explanation, campaign.wall);
  if (!explanation.walls.empty()) {
    explanation.finding = Finding::kWall;
  } else if (explanation.undecided == 0) {
    explanation.finding = Finding::kFalseAlarm;
  }
  return explanation;
}

}  // namespace

std::string too_short_note(std::size_t count) {
  return fmt::format(
      "in {} configurations nothing completed within the measured time, so they are undecided; "
      "measure longer (measure.seconds of the campaign), or name a device with --target",
      count);
}

Explanation explanation_of(const Campaign& campaign, const Configuration& baseline,
                           const ExplainOptions& options) {
  Explanation explanation;
  explanation.campaign = campaign.name;
  explanation.metric = campaign.wall.metric;
  explanation.bound = bound_text(campaign.wall);
  explanation.confidence = options.confidence;
  explanation.baseline = baseline;
  return explanation;
}

Result<Explanation> explain(const Campaign& campaign, std::span<const Observation> observations,
                            const ExplainOptions& options, const Laboratory* laboratory) {
  const Configuration baseline = whole_baseline(campaign);
  if (laboratory == nullptr) return explain_stored(campaign, baseline, observations, options);
  return explain_tested(campaign, baseline, observations, options, *laboratory);
}

}  // namespace greynic::causal
