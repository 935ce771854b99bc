#include "greynic/causal/explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "experiment.h"
#include "hypothesis.h"

namespace greynic::causal {
namespace {

struct Judgement {
  Configuration configuration;
  Verdict verdict;
};

/// Holm's step-down: which of the p values stand at family-wise level alpha.
std::vector<bool> holm(const std::vector<double>& p_values, double alpha) {
  std::vector<std::size_t> order(p_values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> accepted(p_values.size(), false);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (p_values[order[rank]] > alpha / static_cast<double>(order.size() - rank)) break;
    accepted[order[rank]] = true;
  }
  return accepted;
}

/// Walls by Holm; what failed outright is a wall by its outcome.
std::vector<Wall> accepted_walls(const std::vector<Judgement>& judged, double alpha) {
  std::vector<double> p_values;
  for (const Judgement& one : judged) p_values.push_back(one.verdict.p_wall);
  const std::vector<bool> accepted = holm(p_values, alpha);
  std::vector<Wall> walls;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const Verdict& verdict = judged[i].verdict;
    const bool failed = !verdict.outcome.empty() && verdict.decided;
    if (!failed && !(accepted[i] && verdict.wall)) continue;
    walls.push_back({judged[i].configuration, verdict.ratio, verdict.p_wall, verdict.tests,
                     verdict.outcome, std::nullopt});
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

/// Brings what the run left open to a decision.
Result<void> settle(std::vector<Judgement>& judged, Experiment& experiment, double alpha) {
  for (Judgement& one : judged) {
    if (one.verdict.decided || !one.verdict.testable) continue;
    auto verdict = experiment.decide(one.configuration, alpha, "settling what the run left open");
    if (!verdict) return pass_on(verdict);
    one.verdict = *verdict;
  }
  return {};
}

/// Causes, wall by wall, until all are explained or given up.
Result<void> find_causes(Explanation& explanation, const Configuration& baseline,
                         const std::vector<Configuration>& clear, Experiment* experiment,
                         const ExplainOptions& options) {
  std::vector<bool> given_up(explanation.walls.size(), false);
  Judged judged;
  for (const Wall& wall : explanation.walls) judged.walls.push_back(wall.configuration);
  judged.clear = clear;
  while (const auto index = next_wall(explanation.walls, baseline, given_up)) {
    Wall& wall = explanation.walls[*index];
    given_up[*index] = true;
    std::optional<Cause> cause;
    if (experiment != nullptr) {
      auto found = experiment->cause_of(wall.configuration);
      if (!found && found.error().code != ErrorCode::kAllowanceSpent) return pass_on(found);
      if (found && found->cause) {
        cause = std::move(found->cause);
      } else {
        explanation.notes.push_back(fmt::format("{}: {}", wall.configuration.name(),
                                                found ? found->why_not : found.error().message));
      }
    } else {
      cause = best_hypothesis(baseline, wall.configuration, judged, options.most_terms);
      if (cause) cause->severity = wall.ratio;
    }
    if (!cause) continue;
    assign(explanation.walls, *cause, explanation.causes.size());
    explanation.causes.push_back(std::move(*cause));
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

/// A wall that comes gradually has one threshold here and another there, as other settings and
/// noise will have it, and each search finds its own: the widest of them says what the others say.
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

/// Excuses the clear configurations that a cause accuses. Only walls that no other cause explains
/// speak against an exception.
Result<void> find_exceptions(Explanation& explanation, const std::vector<Configuration>& clear,
                             Experiment* experiment) {
  for (std::size_t i = 0; i < explanation.causes.size(); ++i) {
    Cause& cause = explanation.causes[i];
    Judged judged;
    judged.clear = clear;
    for (const Wall& wall : explanation.walls) {
      bool elsewhere = false;
      for (std::size_t j = 0; j < explanation.causes.size(); ++j) {
        elsewhere |= j != i && explanation.causes[j].holds(wall.configuration);
      }
      if (!elsewhere && cause.holds(wall.configuration)) judged.walls.push_back(wall.configuration);
    }
    if (judged.walls.empty()) continue;
    // Without a test, one clear configuration is no reason: it shares its levels by chance.
    const std::size_t least = experiment != nullptr ? 1 : 2;
    std::optional<Error> error;
    cause.unless = exceptions(cause, judged, least, [&](Condition& exception) {
      if (experiment == nullptr || error) return !error;
      auto tested = experiment->confirm_exception(cause, judged.walls.front(), exception);
      if (!tested) error = tested.error();
      return tested && exception.confirmed;
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
  std::vector<Observation> given(observations.begin(), observations.end());
  std::size_t for_baseline = 0;
  const bool relative = campaign.wall.below_baseline_by || campaign.wall.above_baseline_by;
  const bool has_baseline = std::any_of(given.begin(), given.end(), [&](const Observation& one) {
    return one.asked == baseline && one.value(campaign.wall.metric);
  });
  if (relative && !has_baseline && laboratory != nullptr) {
    auto measured = laboratory->measure(baseline, std::max(3, campaign.measure.repeats));
    if (!measured) return measured.error().while_doing("measuring the baseline");
    for_baseline = measured->size();
    given.insert(given.end(), measured->begin(), measured->end());
  }
  auto judge = Judge::create(campaign, baseline, given, options.confidence);
  if (!judge) return pass_on(judge);

  Explanation explanation;
  explanation.campaign = campaign.name;
  explanation.metric = campaign.wall.metric;
  explanation.bound = judge->bound_text();
  explanation.expected = judge->expected();
  explanation.confidence = options.confidence;
  explanation.tests_read = observations.size();

  std::vector<Judgement> judged;
  for (const Configuration& configuration : judge->configurations()) {
    if (options.ordered.contains(configuration.name())) continue;
    judged.push_back({configuration, judge->verdict(configuration, alpha)});
  }
  explanation.configurations = judged.size();
  std::optional<Experiment> experiment;
  if (laboratory != nullptr) {
    experiment.emplace(campaign, baseline, *judge, options, *laboratory);
    auto settled = settle(judged, *experiment, alpha);
    if (!settled && settled.error().code != ErrorCode::kAllowanceSpent) return pass_on(settled);
    if (!settled) explanation.notes.push_back(settled.error().message);
  }
  explanation.walls = accepted_walls(judged, alpha);
  std::sort(explanation.walls.begin(), explanation.walls.end(), [&](const Wall& a, const Wall& b) {
    return badness(a, campaign.wall) > badness(b, campaign.wall);
  });
  std::vector<Configuration> clear;
  for (const Judgement& one : judged) {
    if (!one.verdict.testable) {
      ++explanation.refused;
    } else if (!one.verdict.decided) {
      ++explanation.undecided;
    } else if (!one.verdict.wall) {
      clear.push_back(one.configuration);
    }
  }
  auto found =
      find_causes(explanation, baseline, clear, experiment ? &*experiment : nullptr, options);
  if (!found) return pass_on(found);
  drop_narrower_causes(explanation);
  found = find_exceptions(explanation, clear, experiment ? &*experiment : nullptr);
  if (!found) return pass_on(found);
  order_causes(explanation);
  explanation.tests_ordered = for_baseline + (experiment ? experiment->tests_ordered() : 0);
  return explanation;
}

}  // namespace greynic::causal
