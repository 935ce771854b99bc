#include "hypothesis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "causes.h"

namespace greynic::causal {
namespace {

/// How many configurations of a list a conjunction holds on.
std::size_t support(const Cause& cause, const std::vector<Configuration>& list) {
  return static_cast<std::size_t>(std::count_if(
      list.begin(), list.end(),
      [&](const Configuration& configuration) { return cause.holds(configuration); }));
}

/// Moves each numeric bound towards the baseline as far as no clear configuration is let in.
void widen(Cause& cause, const Configuration& baseline, const WallsAndClear& tested) {
  for (Condition& condition : cause.all_of) {
    if (condition.relation == Relation::kEquals) continue;
    std::set<double> levels;
    for (const auto* list : {&tested.walls, &tested.clear}) {
      for (const Configuration& configuration : *list) {
        if (const FactorValue* value = configuration.find(condition.factor)) {
          if (const double* number = std::get_if<double>(value)) levels.insert(*number);
        }
      }
    }
    std::vector<double> towards(levels.begin(), levels.end());
    if (condition.relation == Relation::kAtLeast) std::reverse(towards.begin(), towards.end());
    const double base = baseline.number(condition.factor);
    const bool up = condition.relation == Relation::kAtLeast;
    for (const double level : towards) {
      const double now = std::get<double>(condition.level);
      if (up ? level >= now : level <= now) continue;
      if (up ? level <= base : level >= base) break;
      const FactorValue before = condition.level;
      condition.level = level;
      if (support(cause, tested.clear) > 0) {
        condition.level = before;
        condition.clear_level = level;
        break;
      }
    }
  }
}

}  // namespace

std::optional<Cause> best_hypothesis(const Configuration& baseline, const Configuration& wall,
                                     const WallsAndClear& tested, int most_terms) {
  const std::vector<std::string> factors = changed_factors(baseline, wall);
  std::vector<Condition> conditions;
  for (const std::string& name : factors) {
    const FactorValue* base = baseline.find(name);
    const FactorValue* level = wall.find(name);
    if (base != nullptr && level != nullptr)
      conditions.push_back(condition_for(name, *base, *level));
  }
  const double all = static_cast<double>(tested.walls.size() + tested.clear.size());
  const double wall_share = static_cast<double>(tested.walls.size()) / std::max(all, 1.0);
  double tried = 0.0;
  std::optional<Cause> best;
  std::vector<std::size_t> chosen;
  const auto visit = [&](const auto& self, std::size_t from, int left) -> void {
    if (left == 0) {
      tried += 1.0;
      Cause cause;
      for (const std::size_t i : chosen) cause.all_of.push_back(conditions[i]);
      if (support(cause, tested.clear) > 0) return;
      widen(cause, baseline, tested);
      cause.walls_explained = support(cause, tested.walls);
      if (!best || cause.walls_explained > best->walls_explained) best = std::move(cause);
      return;
    }
    for (std::size_t i = from; i < conditions.size(); ++i) {
      chosen.push_back(i);
      self(self, i + 1, left - 1);
      chosen.pop_back();
    }
  };
  for (int terms = 1; terms <= most_terms && !best; ++terms) visit(visit, 0, terms);
  if (best) {
    const double luck = tried * std::pow(wall_share, static_cast<double>(best->walls_explained));
    best->confidence = std::clamp(1.0 - luck, 0.0, 1.0);
  }
  return best;
}

std::vector<Condition> exceptions(const Cause& cause, const WallsAndClear& tested,
                                  std::size_t least,
                                  const std::function<bool(Condition&)>& accept) {
  std::vector<Configuration> accused;
  for (const Configuration& one : tested.clear) {
    if (cause.holds(one)) accused.push_back(one);
  }
  std::map<std::pair<std::string, FactorValue>, std::size_t> excused;
  for (const Configuration& one : accused) {
    for (const auto& level : one.levels()) ++excused[level];
  }
  for (const Configuration& wall : tested.walls) {
    if (!cause.holds(wall)) continue;
    for (const auto& level : wall.levels()) excused.erase(level);
  }
  std::vector<Condition> found;
  while (!accused.empty() && !excused.empty()) {
    const auto best =
        std::max_element(excused.begin(), excused.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best->second < least) break;
    Condition exception;
    exception.factor = best->first.first;
    exception.level = best->first.second;
    excused.erase(best);
    if (!accept(exception)) continue;
    found.push_back(std::move(exception));
    std::erase_if(accused, [&](const Configuration& one) {
      const FactorValue* value = one.find(found.back().factor);
      if (value == nullptr || *value != found.back().level) return false;
      for (const auto& level : one.levels()) {
        const auto row = excused.find(level);
        if (row != excused.end()) --row->second;
      }
      return true;
    });
  }
  return found;
}

}  // namespace greynic::causal
