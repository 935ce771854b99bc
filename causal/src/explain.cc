#include "greynic/causal/explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "experiment.h"
#include "greynic/statistics/holm.h"
#include "hypothesis.h"
#include "wall_test.h"

namespace greynic::causal {
namespace {

struct TestedConfiguration {
  Configuration configuration;
  WallTest test;
};

/// Walls by Holm; what failed outright is a wall by its outcome.
std::vector<Wall> accepted_walls(const std::vector<TestedConfiguration>& all, double alpha) {
  std::vector<double> p_values;
  for (const TestedConfiguration& one : all) p_values.push_back(one.test.p_wall);
  const std::vector<double> adjusted = statistics::holm_adjusted(p_values);
  std::vector<Wall> walls;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const WallTest& test = all[i].test;
    const bool failed = !test.outcome.empty() && test.decided;
    if (!failed && !(adjusted[i] <= alpha && test.wall)) continue;
    walls.push_back(
        {all[i].configuration, test.ratio, test.p_wall, test.tests, test.outcome, std::nullopt});
  }
  return walls;
}

/// Badness for sorting: how far from 1 on the bad side.
double badness(const Wall& wall, const WallRule& rule) {
  if (!wall.outcome.empty()) return 1e300;
  const bool below = rule.below_baseline_by || rule.below;
  return below ? -wall.ratio.value : wall.ratio.value;
}

/// The unexplained wall that differs least from the baseline, then the worst: it has the least to
/// search.
std::optional<std::size_t> next_wall(const std::vector<Wall>& walls, const Configuration& baseline,
                                     const std::vector<bool>& given_up) {
  std::optional<std::size_t> best;
  std::size_t fewest = 0;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    if (walls[i].cause || given_up[i]) continue;
    const std::size_t changed = changed_factors(baseline, walls[i].configuration).size();
    if (!best || changed < fewest) {
      best = i;
      fewest = changed;
    }
  }
  return best;
}

void assign(std::vector<Wall>& walls, const Cause& cause, std::size_t index) {
  for (Wall& wall : walls) {
    if (!wall.cause && cause.holds(wall.configuration)) wall.cause = index;
  }
}

/// Brings what the run left open to a decision, also where its measurements were too short.
Result<void> settle(std::vector<TestedConfiguration>& all, Experiment& experiment, double alpha) {
  for (TestedConfiguration& one : all) {
    if (one.test.decided || !(one.test.testable || one.test.too_short)) continue;
    auto test = experiment.decide(one.configuration, alpha, "settling what the run left open");
    if (!test) return pass_on(test);
    one.test = *test;
  }
  return {};
}

/// The cause of one wall by experiment; a note of the explanation says why there is none.
Result<std::optional<Cause>> cause_by_experiment(Explanation& explanation, const Wall& wall,
                                                 Experiment& experiment) {
  auto found = experiment.cause_of(wall.configuration);
  if (!found && found.error().code != ErrorCode::kAllowanceSpent) return pass_on(found);
  if (found && found->cause) return std::move(found->cause);
  explanation.notes.push_back(fmt::format("{}: {}", wall.configuration.name(),
                                          found ? found->why_not : found.error().message));
  return std::nullopt;
}

/// Causes, wall by wall, until all are explained or given up.
Result<void> find_causes(Explanation& explanation, const Configuration& baseline,
                         const std::vector<Configuration>& clear, Experiment* experiment,
                         const ExplainOptions& options) {
  std::vector<bool> given_up(explanation.walls.size(), false);
  WallsAndClear tested{.walls = {}, .clear = clear};
  for (const Wall& wall : explanation.walls) tested.walls.push_back(wall.configuration);
  std::size_t by_chance = 0;
  while (const auto index = next_wall(explanation.walls, baseline, given_up)) {
    Wall& wall = explanation.walls[*index];
    given_up[*index] = true;
    std::optional<Cause> cause;
    if (experiment != nullptr) {
      auto found = cause_by_experiment(explanation, wall, *experiment);
      if (!found) return pass_on(found);
      cause = std::move(*found);
    } else {
      cause = best_hypothesis(baseline, wall.configuration, tested, options.most_terms);
      if (cause && cause->confidence <= 0.0) {
        ++by_chance;
        cause.reset();
      }
      if (cause) cause->severity = wall.ratio;
    }
    if (!cause) continue;
    assign(explanation.walls, *cause, explanation.causes.size());
    explanation.causes.push_back(std::move(*cause));
  }
  if (by_chance > 0) {
    explanation.notes.push_back(
        fmt::format("{} walls share nothing that chance would not explain as well; measure more "
                    "configurations, or name a device with --target",
                    by_chance));
  }
  return {};
}

/// Whatever meets the one meets the other.
bool implies(const Condition& one, const Condition& other) {
  if (one.factor != other.factor || !other.holds(one.level)) return false;
  return other.relation == Relation::kEquals || one.relation == Relation::kEquals ||
         one.relation == other.relation;
}

bool implies(const Cause& one, const Cause& other) {
  return std::all_of(other.all_of.begin(), other.all_of.end(), [&](const Condition& wanted) {
    return std::any_of(one.all_of.begin(), one.all_of.end(),
                       [&](const Condition& given) { return implies(given, wanted); });
  });
}

/// The threshold of a gradual wall differs from wall to wall, and each search finds its own. The
/// widest cause covers the narrower ones, so only it is kept.
void drop_narrower_causes(Explanation& explanation) {
  std::vector<Cause> kept;
  for (std::size_t i = 0; i < explanation.causes.size(); ++i) {
    const Cause& cause = explanation.causes[i];
    bool told = false;
    for (std::size_t j = 0; j < explanation.causes.size() && !told; ++j) {
      const Cause& other = explanation.causes[j];
      told = i != j && implies(cause, other) && (j < i || !implies(other, cause));
    }
    if (!told) kept.push_back(cause);
  }
  explanation.causes = std::move(kept);
}

/// Finds exceptions for the clear configurations in which all terms of a cause hold. Only walls
/// that no other cause explains speak against an exception.
Result<void> find_exceptions(Explanation& explanation, const std::vector<Configuration>& clear,
                             Experiment* experiment) {
  for (std::size_t i = 0; i < explanation.causes.size(); ++i) {
    Cause& cause = explanation.causes[i];
    WallsAndClear tested{.walls = {}, .clear = clear};
    for (const Wall& wall : explanation.walls) {
      bool elsewhere = false;
      for (std::size_t j = 0; j < explanation.causes.size(); ++j) {
        elsewhere |= j != i && explanation.causes[j].holds(wall.configuration);
      }
      if (!elsewhere && cause.holds(wall.configuration)) tested.walls.push_back(wall.configuration);
    }
    if (tested.walls.empty()) continue;
    // Without a test, one clear configuration is no reason: it shares its levels by chance.
    const std::size_t least = experiment != nullptr ? 1 : 2;
    std::optional<Error> error;
    cause.unless = exceptions(cause, tested, least, [&](Condition& exception) {
      if (experiment == nullptr || error) return !error;
      auto done = experiment->confirm_exception(cause, tested.walls.front(), exception);
      if (!done) error = done.error();
      return done && exception.confirmed;
    });
    if (error && error->code != ErrorCode::kAllowanceSpent) return tl::unexpected<Error>(*error);
    if (error) explanation.notes.push_back(error->message);
  }
  for (Wall& wall : explanation.walls) wall.cause.reset();
  for (std::size_t i = 0; i < explanation.causes.size(); ++i) {
    assign(explanation.walls, explanation.causes[i], i);
  }
  return {};
}

/// Sorts causes by how much they explain, and lets the walls follow.
void order_causes(Explanation& explanation) {
  for (Cause& cause : explanation.causes) cause.walls_explained = 0;
  for (const Wall& wall : explanation.walls) {
    if (wall.cause) ++explanation.causes[*wall.cause].walls_explained;
  }
  std::vector<std::size_t> order(explanation.causes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return explanation.causes[a].walls_explained > explanation.causes[b].walls_explained;
  });
  std::vector<std::size_t> place(order.size());
  std::vector<Cause> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(explanation.causes[order[i]]));
  }
  explanation.causes = std::move(sorted);
  for (Wall& wall : explanation.walls) {
    if (wall.cause) wall.cause = place[*wall.cause];
  }
}

/// The run's observations, and the baseline's where the run lacks them and a laboratory is there.
Result<std::vector<Observation>> with_baseline(const Campaign& campaign,
                                               const Configuration& baseline,
                                               std::span<const Observation> observations,
                                               const Laboratory* laboratory) {
  std::vector<Observation> all(observations.begin(), observations.end());
  const bool has_baseline = std::any_of(all.begin(), all.end(), [&](const Observation& one) {
    return one.asked == baseline && one.value(campaign.wall.metric);
  });
  if (!is_relative(campaign.wall) || has_baseline || laboratory == nullptr) return all;
  auto measured = laboratory->measure(baseline, std::max(3, campaign.measure.repeats));
  if (!measured) return measured.error().while_doing("measuring the baseline");
  all.insert(all.end(), measured->begin(), measured->end());
  return all;
}

/// Clear configurations; those that no test could judge are counted by why.
std::vector<Configuration> sort_out(const std::vector<TestedConfiguration>& all,
                                    Explanation& explanation) {
  std::vector<Configuration> clear;
  std::size_t too_short = 0;
  for (const TestedConfiguration& one : all) {
    too_short += one.test.too_short ? 1 : 0;
    if (!one.test.testable && !one.test.too_short) {
      ++explanation.refused;
    } else if (!one.test.decided) {
      ++explanation.undecided;
      explanation.undecided_configurations.push_back(one.configuration);
    } else if (!one.test.wall) {
      clear.push_back(one.configuration);
    }
  }
  if (too_short > 0) {
    explanation.notes.push_back(
        fmt::format("in {} configurations nothing completed within the measured time, so they are "
                    "undecided; measure longer (measure.seconds of the campaign), or name a device "
                    "with --target",
                    too_short));
  }
  return clear;
}

}  // namespace

bool Condition::holds(const FactorValue& value) const {
  const double* number = std::get_if<double>(&value);
  const double* bound = std::get_if<double>(&level);
  if (relation == Relation::kEquals || number == nullptr || bound == nullptr) return value == level;
  return relation == Relation::kAtLeast ? *number >= *bound : *number <= *bound;
}

bool Cause::holds(const Configuration& configuration) const {
  const auto met = [&](const Condition& condition) {
    const FactorValue* value = configuration.find(condition.factor);
    return value != nullptr && condition.holds(*value);
  };
  return std::all_of(all_of.begin(), all_of.end(), met) &&
         std::none_of(unless.begin(), unless.end(), met);
}

Result<Explanation> explain(const Campaign& campaign, std::span<const Observation> observations,
                            const ExplainOptions& options, const Laboratory* laboratory) {
  const Configuration baseline = whole_baseline(campaign);
  const double alpha = 1.0 - options.confidence;
  const auto given = with_baseline(campaign, baseline, observations, laboratory);
  if (!given) return pass_on(given);
  auto tester = WallTester::create(campaign, baseline, *given, options.confidence);
  if (!tester) return pass_on(tester);

  Explanation explanation;
  explanation.campaign = campaign.name;
  explanation.metric = campaign.wall.metric;
  explanation.bound = tester->bound_text();
  explanation.expected = tester->expected();
  explanation.confidence = options.confidence;
  explanation.tests_read = observations.size();

  std::vector<TestedConfiguration> all;
  for (const Configuration& configuration : tester->configurations()) {
    if (options.ordered.contains(configuration.name())) continue;
    all.push_back({configuration, tester->test(configuration, alpha)});
  }
  explanation.configurations = all.size();
  std::optional<Experiment> experiment;
  if (laboratory != nullptr) {
    experiment.emplace(campaign, baseline, *tester, options, *laboratory);
    auto settled = settle(all, *experiment, alpha);
    if (!settled && settled.error().code != ErrorCode::kAllowanceSpent) return pass_on(settled);
    if (!settled) explanation.notes.push_back(settled.error().message);
  }
  explanation.walls = accepted_walls(all, alpha);
  std::sort(explanation.walls.begin(), explanation.walls.end(), [&](const Wall& a, const Wall& b) {
    return badness(a, campaign.wall) > badness(b, campaign.wall);
  });
  const std::vector<Configuration> clear = sort_out(all, explanation);
  Experiment* const asked = experiment ? &*experiment : nullptr;
  if (auto done = find_causes(explanation, baseline, clear, asked, options); !done) {
    return pass_on(done);
  }
  drop_narrower_causes(explanation);
  if (auto done = find_exceptions(explanation, clear, asked); !done) return pass_on(done);
  order_causes(explanation);
  explanation.tests_ordered =
      given->size() - observations.size() + (experiment ? experiment->tests_ordered() : 0);
  return explanation;
}

}  // namespace greynic::causal
