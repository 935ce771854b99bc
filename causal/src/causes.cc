#include "causes.h"

#include <algorithm>
#include <set>

#include "hypothesis.h"

namespace greynic::causal {
namespace {

/// Badness for sorting: how far from 1 on the bad side.
double badness(const Wall& wall, const WallRule& rule) {
  if (!wall.outcome.empty()) return 1e300;
  const bool below = rule.below_baseline_by || rule.below;
  return below ? -wall.ratio.value : wall.ratio.value;
}

/// Whatever meets the one meets the other.
bool implies(const Condition& one, const Condition& other) {
  if (one.factor != other.factor || one.with != other.with) return false;
  if (one.relation == Relation::kSumAtLeast || other.relation == Relation::kSumAtLeast) {
    return one.relation == other.relation &&
           std::get<double>(one.level) >= std::get<double>(other.level);
  }
  if (one.relation == Relation::kIn) {
    return std::all_of(one.among.begin(), one.among.end(),
                       [&](const FactorValue& level) { return other.holds(level); });
  }
  if (!other.holds(one.level)) return false;
  if (one.relation == Relation::kEquals) return true;
  if (one.relation == Relation::kBetween) return other.holds(FactorValue(one.upper));
  return one.relation == other.relation;
}

bool implies(const Cause& one, const Cause& other) {
  return std::all_of(other.all_of.begin(), other.all_of.end(), [&](const Condition& wanted) {
    return std::any_of(one.all_of.begin(), one.all_of.end(),
                       [&](const Condition& given) { return implies(given, wanted); });
  });
}

}  // namespace

Configuration whole_baseline(const Campaign& campaign) {
  Configuration whole = campaign.baseline;
  for (const Factor& factor : campaign.factors) {
    if (!whole.contains(factor.name) && factor.only_if.empty()) {
      whole.set(factor.name, factor.levels.front());
    }
  }
  return whole;
}

std::vector<std::string> changed_factors(const Configuration& baseline,
                                         const Configuration& configuration) {
  std::set<std::string> names;
  for (const auto& [name, level] : configuration.levels()) {
    const FactorValue* other = baseline.find(name);
    if (other == nullptr || *other != level) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Condition condition_for(const std::string& factor, const FactorValue& baseline,
                        const FactorValue& level) {
  Condition condition;
  condition.factor = factor;
  condition.level = level;
  const double* from = std::get_if<double>(&baseline);
  const double* to = std::get_if<double>(&level);
  if (from != nullptr && to != nullptr) {
    condition.relation = *to > *from ? Relation::kAtLeast : Relation::kAtMost;
    condition.clear_level = *from;
  }
  return condition;
}

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

void drop_narrower_causes(std::vector<Cause>& causes) {
  std::vector<Cause> kept;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    bool told = false;
    for (std::size_t j = 0; j < causes.size() && !told; ++j) {
      told = i != j && implies(causes[i], causes[j]) && (j < i || !implies(causes[j], causes[i]));
    }
    if (!told) kept.push_back(causes[i]);
  }
  causes = std::move(kept);
}

Result<void> find_exceptions(Explanation& explanation, const std::vector<Configuration>& clear,
                             const TestException& test) {
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
    const std::size_t least = test ? 1 : 2;
    std::optional<Error> error;
    cause.unless = exceptions(cause, tested, least, [&](Condition& exception) {
      if (!test || error) return !error;
      const auto clears = test(cause, tested.walls.front(), exception);
      if (!clears) error = clears.error();
      exception.confirmed = clears && *clears;
      return exception.confirmed;
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

void put_in_order(Explanation& explanation, const WallRule& rule) {
  std::stable_sort(
      explanation.walls.begin(), explanation.walls.end(),
      [&](const Wall& a, const Wall& b) { return badness(a, rule) > badness(b, rule); });
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

}  // namespace greynic::causal
