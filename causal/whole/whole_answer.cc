#include <algorithm>

#include "whole_search.h"

/// What a search by all tests at once says: the likeliest answer as causes, with its certificate.

namespace greynic::causal {

Condition WholeSearch::condition_of(const Term& term) const {
  const Lane& lane = lanes_[term.setting];
  Condition condition;
  condition.factor = lane.factor;
  condition.confirmed = true;
  const auto level = [&](int position) {
    return *lane.levels[static_cast<std::size_t>(std::clamp(position, 0, lane.axis.last))];
  };
  if (!lane.axis.ordered) {
    condition.level = level(lane.axis.wall);
    for (int p = 0; p <= lane.axis.last; ++p) {
      if (term.among >> p & 1) condition.among.push_back(level(p));
    }
    const bool several = condition.among.size() > 1;
    if (several) condition.relation = Relation::kIn;
    if (!several) condition.among.clear();
    return condition;
  }
  const auto number = [&](int position) { return std::get<double>(level(position)); };
  const bool up = number(lane.axis.wall) > number(lane.axis.base);
  const int before = term.from - structures_.open_before(term);
  const int after = term.to + structures_.open_after(term);
  condition.level = number(term.from);
  condition.clear_level = number(before);
  condition.relation = up ? Relation::kAtLeast : Relation::kAtMost;
  if (after > lane.axis.last) return condition;
  condition.relation = Relation::kBetween;
  condition.level = number(up ? term.from : term.to);
  condition.upper = number(up ? term.to : term.from);
  condition.clear_level = number(up ? before : after);
  condition.clear_above = number(up ? after : before);
  return condition;
}

void WholeSearch::conclude(CausesOfWall& found) {
  if (structures_.likely().empty()) return;
  const Structure& best = structures_.likely().front();
  for (const Conjunction& cause : best.causes) {
    FoundCause one;
    for (const Term& term : cause) {
      if (structures_.is_absent(term)) {
        one.absent.set(term.setting);
        continue;
      }
      one.terms.set(term.setting);
      one.classes.push_back(Set().set(term.setting));
      one.levels.push_back(condition_of(term));
    }
    one.closed = settings_.closure(one.terms, settings_.all(), settings_.grow({}, settings_.all()));
    one.confidence = 0.0;
    for (const Structure& other : structures_.likely()) {
      if (std::find(other.causes.begin(), other.causes.end(), cause) != other.causes.end()) {
        one.confidence += other.chance;
      }
    }
    found.causes.push_back(std::move(one));
  }
  for (const Positions& healed : structures_.healed()) {
    Healing healing;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      (healed[i] == lanes_[i].axis.wall ? healing.kept : healing.healed).set(i);
    }
    healing.verdict = sure_ ? Verdict::kClear : Verdict::kUndecided;
    found.certificate.push_back(healing);
  }
  found.complete = sure_;
  found.contradicted = is_contradicted();
  found.odds_of_any = sure_ ? best.score : 0.0;
  found.confidence = 1.0 / (1.0 + structures_.further_cause());
}

}  // namespace greynic::causal
