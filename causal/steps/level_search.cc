#include "level_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace greynic::causal {
namespace {

constexpr double kOneSided = 0.6;  // odds that a number has no upper end
constexpr double kInSet = 0.3;     // odds that one more category brings the wall
constexpr double kCornerHolds = 0.95;

}  // namespace

LevelSearch::LevelSearch(Session& session, Settings& settings, std::span<const Cause> known)
    : session_(session), settings_(settings), known_(known) {}

const Cause* LevelSearch::known_at(Id id) const {
  const auto found = std::ranges::find_if(
      known_, [&](const Cause& cause) { return cause.holds(session_.configuration(id)); });
  return found == known_.end() ? nullptr : &*found;
}

/// One test of a wall is hardly ever surer than this, for it may have stalled.
double LevelSearch::level_error() const { return (1.0 - session_.options().confidence) / 3.0; }

/// The campaign's levels and the two that are known, in order, without double ones.
std::vector<double> LevelSearch::numbers_of(const std::string& factor, double home,
                                            double other) const {
  std::vector<double> numbers = {home, other};
  if (const Factor* known = session_.campaign().find(factor)) {
    for (const FactorValue& level : known->levels) {
      if (const double* number = std::get_if<double>(&level)) numbers.push_back(*number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// The cause alone, with one factor at another level. Where a rule forbids that, other factors give
/// way as little as they must, but no term does.
std::optional<Id> LevelSearch::with_level(const std::string& factor, const FactorValue& level) {
  Configuration whole = base_;
  whole.set(factor, level);
  if (auto id = settings_.id_of(whole)) return id;
  const Laboratory& laboratory = session_.laboratory();
  if (!laboratory.complete) return std::nullopt;
  Configuration part;
  for (const auto& [name, value] : base_.levels()) {
    const FactorValue* usual = settings_.baseline().find(name);
    if (usual == nullptr || *usual != value) part.set(name, value);
  }
  part.set(factor, level);
  const auto completed = laboratory.complete(part);
  return completed ? settings_.id_of(*completed) : std::nullopt;
}

/// `path`: indices of numbers from the wall's level outwards. The wall ends somewhere on it.
Result<LevelSearch::Edge> LevelSearch::edge_towards(const std::string& factor,
                                                    const std::vector<double>& numbers,
                                                    const std::vector<std::size_t>& path,
                                                    bool away) {
  // From the far end to the wall's level: the first that is a wall.
  Row row{
      .steps = {}, .before = {}, .never = 0.0, .why = "levels of " + factor, .last_is_known = true};
  std::vector<std::size_t> levels;
  for (std::size_t i = path.size(); i-- > 0;) {
    const auto id = with_level(factor, numbers[path[i]]);
    if (!id) continue;  // forbidden here: the levels on both sides tell
    row.steps.push_back(*id);
    levels.push_back(path[i]);
  }
  const std::size_t count = row.steps.size();
  if (count == 0) return Edge{path.front(), true, 1.0};
  row.before.assign(count, 1.0 / static_cast<double>(count));
  if (away) {
    const double rest = (1.0 - kOneSided) / std::max(1.0, static_cast<double>(count) - 1.0);
    row.before.assign(count, rest);
    row.before.front() = kOneSided;
  } else if (count > 1 && levels.front() == path.back()) {
    row.before.front() = 0.0;  // the baseline's own level is clear
  }
  const auto place = session_.first_wall(row, level_error());
  if (!place) return pass_on(place);
  const std::size_t step = std::min(place->step, count - 1);
  return Edge{levels[step], away && step == 0, place->confidence};
}

Result<Condition> LevelSearch::number_term(const std::string& factor, double home, double other) {
  const std::vector<double> numbers = numbers_of(factor, home, other);
  const auto index = [&](double number) {
    return static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), number) -
                                    numbers.begin());
  };
  const bool up = home > other;
  std::vector<std::size_t> towards;
  std::vector<std::size_t> away;
  for (std::size_t i = index(home);; i = up ? i - 1 : i + 1) {
    towards.push_back(i);
    if (i == index(other)) break;
  }
  for (std::size_t i = index(home); i < numbers.size(); i = up ? i + 1 : i - 1) away.push_back(i);
  auto near = edge_towards(factor, numbers, towards, false);
  if (!near) return pass_on(near);
  Edge far{away.back(), true, 1.0};
  if (away.size() > 1) {
    auto found = edge_towards(factor, numbers, away, true);
    if (!found) return pass_on(found);
    far = *found;
  }
  confidence_ *= near->confidence * far.confidence;
  Condition term;
  term.factor = factor;
  term.confirmed = true;
  term.level = numbers[near->level];
  term.clear_level = numbers[up ? near->level - 1 : near->level + 1];
  term.relation = up ? Relation::kAtLeast : Relation::kAtMost;
  if (!far.open) {
    const double ends[] = {numbers[near->level], numbers[far.level]};
    term.relation = Relation::kBetween;
    term.level = std::min(ends[0], ends[1]);
    term.upper = std::max(ends[0], ends[1]);
    const double beyond = numbers[up ? far.level + 1 : far.level - 1];
    term.clear_level = up ? numbers[near->level - 1] : beyond;
    term.clear_above = up ? beyond : numbers[near->level + 1];
  }
  return term;
}

Result<Condition> LevelSearch::category_term(const std::string& factor, const FactorValue& home,
                                             const FactorValue& other) {
  Condition term;
  term.factor = factor;
  term.confirmed = true;
  term.level = home;
  const Factor* known = session_.campaign().find(factor);
  if (known == nullptr || known->levels.size() <= 2) return term;
  std::vector<Id> ids;
  std::vector<FactorValue> levels;
  std::vector<FactorValue> explained;
  for (const FactorValue& level : known->levels) {
    if (level == home || level == other) continue;
    const auto id = with_level(factor, level);
    if (!id) continue;
    if (const Cause* cause = known_at(*id)) {
      explained.push_back(level);
      confidence_ *= cause->confidence;
      continue;
    }
    ids.push_back(*id);
    levels.push_back(level);
  }
  auto verdicts = session_.decide(ids, kInSet, level_error(), "levels of " + factor);
  if (!verdicts) return pass_on(verdicts);
  std::vector<FactorValue> walls;
  for (const FactorValue& level : known->levels) {
    const auto found = std::find(levels.begin(), levels.end(), level);
    const bool wall =
        found != levels.end()
            ? (*verdicts)[static_cast<std::size_t>(found - levels.begin())] == Verdict::kWall
            : std::ranges::find(explained, level) != explained.end();
    if (level == home || wall) walls.push_back(level);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const double odds = session_.evidence(ids[i]) + std::log(kInSet / (1.0 - kInSet));
    confidence_ *= 1.0 - chance_of(-std::abs(odds));
  }
  if (walls.size() > 1) {
    term.relation = Relation::kIn;
    term.among = std::move(walls);
  }
  return term;
}

Result<Condition> LevelSearch::term_of(std::size_t setting, bool absent) {
  const std::string& factor = settings_.factor(setting);
  const FactorValue* of_wall = settings_.wall().find(factor);
  const FactorValue* of_baseline = settings_.baseline().find(factor);
  const FactorValue& home = absent && of_baseline != nullptr ? *of_baseline : *of_wall;
  const FactorValue* other = absent ? of_wall : of_baseline;
  const double* from = std::get_if<double>(&home);
  const double* to = other != nullptr ? std::get_if<double>(other) : nullptr;
  if (from != nullptr && to != nullptr) return number_term(factor, *from, *to);
  return category_term(factor, home, other != nullptr ? *other : home);
}

/// Two numbers of which one makes up for the other are a sum: the least sum that is a wall is
/// searched for among those that the levels can make. Of pairs with one sum, a tested one stands for
/// all, so thresholds that were searched before narrow the search.
Result<bool> LevelSearch::join_to_sum(Cause& cause, std::size_t a, std::size_t b) {
  Condition& first = cause.all_of[a];
  const Condition& second = cause.all_of[b];
  const double wall_a = std::get<double>(*base_.find(first.factor));
  const double wall_b = std::get<double>(*base_.find(second.factor));
  // Each of the two alone is clear, or it would be the only term.
  const auto usual = [&](const Condition& one, double wall) {
    const FactorValue* level = settings_.baseline().find(one.factor);
    const double* number = level != nullptr ? std::get_if<double>(level) : nullptr;
    return number != nullptr ? *number : wall;
  };
  const double clear = std::max(wall_a + usual(second, *second.clear_level),
                                usual(first, *first.clear_level) + wall_b);
  std::map<double, Id> sums;
  for (const bool tested : {true, false}) {
    for (const double x : numbers_of(first.factor, wall_a, wall_a)) {
      for (const double y : numbers_of(second.factor, wall_b, wall_b)) {
        if (x + y <= clear || x + y > wall_a + wall_b || sums.contains(x + y)) continue;
        Configuration whole = base_;
        whole.set(first.factor, x);
        whole.set(second.factor, y);
        if (tested && !session_.was_tested(whole)) continue;
        if (const auto id = settings_.id_of(whole)) sums.emplace(x + y, *id);
      }
    }
  }
  Row row{.steps = {},
          .before = {},
          .never = 0.0,
          .why = fmt::format("the sum of {} and {}", first.factor, second.factor)};
  std::vector<double> values;
  for (const auto& [sum, id] : sums) {
    values.push_back(sum);
    row.steps.push_back(id);
  }
  if (values.empty()) return false;
  row.before.assign(values.size(), 1.0 / static_cast<double>(values.size()));
  const auto place = session_.first_wall(row, level_error());
  if (!place) return pass_on(place);
  if (place->never) return false;
  confidence_ *= place->confidence;
  first.relation = Relation::kSumAtLeast;
  first.with = {second.factor};
  first.level = values[place->step];
  first.clear_level = place->step > 0 ? values[place->step - 1] : clear;
  cause.all_of.erase(cause.all_of.begin() + static_cast<std::ptrdiff_t>(b));
  return true;
}

/// Two thresholds that stand by themselves are a wall together, and neither number makes up for the
/// other where it is below its own.
Result<bool> LevelSearch::is_sum(const Condition& a, const Condition& b) {
  Configuration both = base_;
  both.set(a.factor, a.level);
  both.set(b.factor, b.level);
  const bool moved = a.level != *base_.find(a.factor) && b.level != *base_.find(b.factor);
  if (moved) {
    if (const auto id = settings_.id_of(both)) {
      auto verdict = session_.decide(*id, kCornerHolds, level_error(), "two thresholds together");
      if (!verdict) return pass_on(verdict);
      if (*verdict == Verdict::kClear) return true;
    }
  }
  for (const auto& [high, low] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const double home = std::get<double>(*base_.find(high->factor));
    const double most = numbers_of(high->factor, home, home).back();
    if (most == home) continue;
    Configuration other = base_;
    other.set(high->factor, most);
    other.set(low->factor, *low->clear_level);
    const auto id = settings_.id_of(other);
    if (!id) continue;
    auto verdict =
        session_.decide(*id, 1.0 - kCornerHolds, level_error(), "does one make up for the other?");
    if (!verdict) return pass_on(verdict);
    if (*verdict == Verdict::kWall) return true;
  }
  return false;
}

Result<void> LevelSearch::check_sums(Cause& cause) {
  for (std::size_t i = 0; i < cause.all_of.size(); ++i) {
    for (std::size_t j = i + 1; j < cause.all_of.size(); ++j) {
      const Condition& a = cause.all_of[i];
      const Condition& b = cause.all_of[j];
      if (a.relation != Relation::kAtLeast || b.relation != Relation::kAtLeast) continue;
      if (base_.find(a.factor) == nullptr || base_.find(b.factor) == nullptr) continue;
      auto sum = is_sum(a, b);
      if (!sum) return pass_on(sum);
      if (!*sum) continue;
      auto joined = join_to_sum(cause, i, j);
      if (!joined) return pass_on(joined);
      if (*joined) return {};
    }
  }
  return {};
}

Result<Cause> LevelSearch::levels_of(const FoundCause& found) {
  const JudgingByBound judging(session_);
  base_ = session_.configuration(settings_.known_id(found.closed));
  confidence_ = found.confidence;
  Cause cause;
  cause.by_experiment = true;
  cause.emergent = found.absent.any();
  const auto each = [&](const Set& settings, bool absent) -> Result<void> {
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      if (!settings.test(i)) continue;
      auto term = term_of(i, absent);
      if (!term) return pass_on(term);
      for (const Set& together : found.classes) {
        if (!together.test(i) || together.count() < 2) continue;
        for (std::size_t j = 0; j < settings_.size(); ++j) {
          if (j != i && together.test(j)) term->alike.push_back(settings_.factor(j));
        }
      }
      cause.all_of.push_back(std::move(*term));
    }
    return {};
  };
  cause.all_of = found.levels;
  if (found.levels.empty()) {
    if (auto done = each(found.terms, false); !done) return pass_on(done);
  }
  if (auto done = each(found.absent, true); !done) return pass_on(done);
  if (auto done = check_sums(cause); !done) return pass_on(done);
  std::sort(cause.all_of.begin(), cause.all_of.end(),
            [](const Condition& a, const Condition& b) { return a.factor < b.factor; });
  cause.confidence = confidence_;
  return cause;
}

}  // namespace greynic::causal
