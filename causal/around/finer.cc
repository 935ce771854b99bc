#include "finer.h"

#include <cmath>

namespace greynic::causal {
namespace {

constexpr int kMostHalvings = 40;

Result<Bracket> halve(Session& session, Settings& settings, const Configuration& alone,
                      const std::string& factor, double share, Bracket bracket) {
  const bool whole =
      std::trunc(bracket.clear) == bracket.clear && std::trunc(bracket.wall) == bracket.wall;
  for (int i = 0; i < kMostHalvings; ++i) {
    const double apart = std::abs(bracket.wall - bracket.clear);
    const double larger = std::max(std::abs(bracket.wall), std::abs(bracket.clear));
    if (apart <= share * larger || (whole && apart <= 1.0)) break;
    double middle = (bracket.clear + bracket.wall) / 2.0;
    if (whole) middle = std::floor(middle);
    Configuration at = alone;
    at.set(factor, middle);
    const auto id = settings.id_of(at);
    if (!id) break;
    const double error = (1.0 - session.options().confidence) / 8.0;
    auto verdict = session.decide(*id, 0.5, error, "between levels of " + factor);
    if (!verdict) return pass_on(verdict);
    if (*verdict == Verdict::kWall) {
      bracket.wall = middle;
    } else if (*verdict == Verdict::kClear) {
      bracket.clear = middle;
    } else {
      break;
    }
  }
  return bracket;
}

}  // namespace

Result<void> find_finer(Session& session, Settings& settings, const Configuration& alone,
                        double share, Cause& cause) {
  const JudgingByBound judging(session);
  for (Condition& term : cause.all_of) {
    const double* level = std::get_if<double>(&term.level);
    if (level == nullptr || !term.clear_level || term.relation == Relation::kSumAtLeast) continue;
    auto begin = halve(session, settings, alone, term.factor, share, {*term.clear_level, *level});
    if (!begin) return pass_on(begin);
    term.finer = *begin;
    if (!term.clear_above) continue;
    auto end = halve(session, settings, alone, term.factor, share, {*term.clear_above, term.upper});
    if (!end) return pass_on(end);
    term.finer_above = *end;
  }
  return {};
}

}  // namespace greynic::causal
