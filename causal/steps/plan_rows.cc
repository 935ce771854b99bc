#include "plan_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace greynic::causal {
namespace {

constexpr double kToldByClear = -1.0;           // log odds
constexpr std::size_t kMostPlaces = 4'000'000;  // of choices of levels
constexpr std::size_t kMostWork = 1'000'000;    // rows times choices, where levels move
constexpr double kHeat = 0.4;                   // how much a move may lose, in choices
constexpr std::uint32_t kBarredFor = 10;        // moves, that a level does not come back
constexpr std::size_t kMovesToAdd = 100;        // in vain, before there is a row more,
constexpr std::size_t kMovesToDrop = 20'000;    // and before there is one less
constexpr std::size_t kMostLooks = 10'000'000;  // at choices, for one plan: some 0.1 s
constexpr int kTriesToHeal = 60;
constexpr int kTriesEach = 12;
constexpr std::size_t kAbsent = SIZE_MAX;  // level of a factor that a row does not have

bool is_in(const Configuration& part, const Configuration& whole) {
  return std::all_of(part.levels().begin(), part.levels().end(), [&](const auto& one) {
    const FactorValue* level = whole.find(one.first);
    return level != nullptr && *level == one.second;
  });
}

}  // namespace

/// Levels that rows gave up a few moves ago.
struct PlanRows::Barred {
  Barred(std::size_t rows, std::size_t of_row)
      : factors(of_row), last(rows * of_row), until(rows * of_row, 0) {}
  [[nodiscard]] bool is(const Step& step) const {
    const std::size_t at = step.row * factors + step.factor;
    return until[at] > now && last[at] == step.level;
  }
  void add(const Step& step, statistics::Random& random) {
    const std::size_t at = step.row * factors + step.factor;
    last[at] = step.level;
    until[at] = ++now + 1 + random.below(kBarredFor);
  }

  std::size_t factors;
  std::vector<std::size_t> last, until;
  std::size_t now = 0;
  std::ptrdiff_t fewest = PTRDIFF_MAX;
};

PlanRows::PlanRows(const Campaign& campaign, std::vector<Configuration> rows)
    : campaign_(campaign), rows_(std::move(rows)) {
  const Design& design = campaign.design;
  const auto named = [&](const Configuration& row) {
    return std::any_of(campaign.seeds.begin(), campaign.seeds.end(),
                       [&](const Configuration& seed) { return is_in(seed, row); });
  };
  by_name_ = static_cast<std::size_t>(std::stable_partition(rows_.begin(), rows_.end(), named) -
                                      rows_.begin());
  bool conditions = false;
  for (std::size_t i = 0; i < campaign.factors.size(); ++i) {
    conditions = conditions || !campaign.factors[i].only_if.empty();
    if (campaign.factors[i].levels.size() > 1) varied_.push_back(i);
  }
  if (design.kind != DesignKind::kCovering || conditions) return;
  covers_ = true;
  std::vector<std::size_t> of(varied_.size());
  std::iota(of.begin(), of.end(), std::size_t{0});
  add_choices(of, static_cast<std::size_t>(design.strength));
  for (const StrengthGroup& group : design.groups) {
    of.clear();
    for (std::size_t i = 0; i < varied_.size(); ++i) {
      const auto& names = group.factors;
      if (std::find(names.begin(), names.end(), campaign.factors[varied_[i]].name) != names.end())
        of.push_back(i);
    }
    add_choices(of, static_cast<std::size_t>(group.strength));
  }
  if (!covers_) return;
  moves_ = rows_.size() * choices_.size() <= kMostWork;
  choices_with_.resize(varied_.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    for (const std::size_t factor : choices_[i].factors) choices_with_[factor].push_back(i);
  }
  // What no row of the plan has is forbidden, or not asked for.
  for (const Configuration& row : rows_) {
    const Levels levels = levels_of(row);
    for (const Choice& choice : choices_) open_[place_of(choice, levels)] = true;
  }
}

void PlanRows::add_choices(const std::vector<std::size_t>& of, std::size_t strength) {
  strength = std::min(strength, of.size());
  std::vector<std::size_t> places(strength);
  std::iota(places.begin(), places.end(), std::size_t{0});
  while (covers_ && strength > 0) {
    Choice choice;
    choice.first = open_.size();
    std::size_t count = 1;
    for (const std::size_t place : places) {
      choice.factors.push_back(of[place]);
      choice.strides.push_back(count);
      count *= campaign_.factors[varied_[of[place]]].levels.size();
    }
    covers_ = open_.size() + count <= kMostPlaces;
    if (!covers_) return;
    choices_.push_back(std::move(choice));
    open_.resize(open_.size() + count, false);
    std::size_t i = strength;
    while (i > 0 && places[i - 1] == of.size() - strength + i - 1) --i;
    if (i == 0) return;
    ++places[i - 1];
    for (; i < strength; ++i) places[i] = places[i - 1] + 1;
  }
}

PlanRows::Levels PlanRows::levels_of(const Configuration& row) const {
  Levels levels(varied_.size(), kAbsent);
  for (std::size_t i = 0; i < varied_.size(); ++i) {
    const Factor& factor = campaign_.factors[varied_[i]];
    const FactorValue* level = row.find(factor.name);
    const auto found = level == nullptr
                           ? factor.levels.end()
                           : std::find(factor.levels.begin(), factor.levels.end(), *level);
    if (found != factor.levels.end())
      levels[i] = static_cast<std::size_t>(found - factor.levels.begin());
  }
  return levels;
}

Configuration PlanRows::row_of(const Levels& levels) const {
  Configuration row = rows_.front();  // what does not vary is the same in all
  for (std::size_t i = 0; i < varied_.size(); ++i) {
    const Factor& factor = campaign_.factors[varied_[i]];
    row.set(factor.name, factor.levels[levels[i]]);
  }
  return row;
}

/// One past the last where a level is none of the campaign's.
std::size_t PlanRows::place_of(const Choice& choice, const Levels& levels) const {
  std::size_t place = choice.first;
  for (std::size_t i = 0; i < choice.factors.size(); ++i) {
    const std::size_t level = levels[choice.factors[i]];
    if (level == kAbsent) return open_.size();
    place += level * choice.strides[i];
  }
  return place;
}

std::size_t PlanRows::open_in(const Levels& levels) const {
  return static_cast<std::size_t>(
      std::count_if(choices_.begin(), choices_.end(), [&](const Choice& choice) {
        const std::size_t place = place_of(choice, levels);
        return place < open_.size() && open_[place];
      }));
}

void PlanRows::tell(const Levels& levels) {
  for (const Choice& choice : choices_) {
    const std::size_t place = place_of(choice, levels);
    if (place < open_.size()) open_[place] = false;
  }
}

void PlanRows::had(const Configuration& row) {
  if (covers_) tell(levels_of(row));
}

void PlanRows::look_at_tests(const Session& session) {
  looked_at_.resize(session.asked(), false);
  for (Id id = 0; id < session.asked(); ++id) {
    if (looked_at_[id] || session.tests_of(id) == 0 || session.evidence(id) > kToldByClear)
      continue;
    looked_at_[id] = true;
    tell(levels_of(session.configuration(id)));
  }
}

void PlanRows::count(std::size_t place, bool more) {
  if (place >= open_.size() || !open_[place]) return;
  if (more && rows_with_[place]++ == 0) {
    missing_[where_[place]] = missing_.back();
    where_[missing_.back()] = where_[place];
    missing_.pop_back();
  } else if (!more && --rows_with_[place] == 0) {
    where_[place] = missing_.size();
    missing_.push_back(place);
  }
}

void PlanRows::count(const Levels& levels, bool more) {
  for (const Choice& choice : choices_) count(place_of(choice, levels), more);
}

/// As count() of both, but only of choices with a level that differs: a move is tried thousands of times.
void PlanRows::move(const Levels& from, const Levels& to) {
  for (std::size_t factor = 0; factor < from.size(); ++factor) {
    if (from[factor] == to[factor]) continue;
    for (const std::size_t number : choices_with_[factor]) {
      const Choice& choice = choices_[number];
      const auto first = std::find_if(choice.factors.begin(), choice.factors.end(),
                                      [&](std::size_t other) { return from[other] != to[other]; });
      if (*first != factor) continue;  // counted with that one
      count(place_of(choice, from), false);
      count(place_of(choice, to), true);
    }
    looks_ += choices_with_[factor].size();
  }
}

const PlanRows::Choice& PlanRows::choice_at(std::size_t place) const {
  const auto after =
      std::upper_bound(choices_.begin(), choices_.end(), place,
                       [](std::size_t one, const Choice& choice) { return one < choice.first; });
  return *std::prev(after);
}

/// The choice of this place, in these levels.
void PlanRows::put(std::size_t place, Levels& levels) const {
  const Choice& choice = choice_at(place);
  std::size_t rest = place - choice.first;
  for (const std::size_t factor : choice.factors) {
    const std::size_t count = campaign_.factors[varied_[factor]].levels.size();
    levels[factor] = rest % count;
    rest /= count;
  }
}

bool PlanRows::may_ask(const Levels& levels, const Holds& is_explained, const Holds& is_allowed) {
  const auto [known, fresh] = may_ask_.emplace(levels, false);
  if (fresh) {
    const Configuration row = row_of(levels);
    known->second = is_allowed(row) && !is_explained(row);
  }
  return known->second;
}

/// How many open choices more no row has, once one takes this level.
std::ptrdiff_t PlanRows::lost_by(const Levels& row, std::size_t factor, std::size_t level) const {
  Levels moved = row;
  moved[factor] = level;
  std::ptrdiff_t lost = 0;
  for (const std::size_t number : choices_with_[factor]) {
    const std::size_t from = place_of(choices_[number], row);
    const std::size_t to = place_of(choices_[number], moved);
    if (from < open_.size() && open_[from] && rows_with_[from] == 1) ++lost;
    if (to < open_.size() && open_[to] && rows_with_[to] == 0) --lost;
  }
  return lost;
}

/// Of the rows that lack one level of this choice, the one that loses least by it. A level that a row gave up
/// does not come back at once, unless that leaves fewer choices without a row than there ever were.
std::optional<PlanRows::Step> PlanRows::best_step(std::size_t place, const Barred& barred,
                                                  const Holds& is_explained,
                                                  const Holds& is_allowed) {
  Levels wanted(varied_.size(), kAbsent);
  put(place, wanted);
  const std::vector<std::size_t>& factors = choice_at(place).factors;
  std::optional<Step> best;
  std::uint32_t as_good = 0;
  for (std::size_t row = 0; row < asked_.size(); ++row) {
    const Levels& levels = asked_[row];
    const auto lacks = [&](std::size_t factor) { return levels[factor] != wanted[factor]; };
    const auto first = std::ranges::find_if(factors, lacks);
    if (first == factors.end() || std::any_of(first + 1, factors.end(), lacks)) continue;
    Step step{.row = row, .factor = *first, .level = wanted[*first]};
    step.lost = lost_by(levels, step.factor, step.level);
    looks_ += choices_with_[step.factor].size();
    const auto missing = static_cast<std::ptrdiff_t>(missing_.size());
    if (barred.is(step) && missing + step.lost >= barred.fewest) continue;
    if (best && step.lost > best->lost) continue;
    Levels moved = levels;
    moved[step.factor] = step.level;
    if (!may_ask(moved, is_explained, is_allowed)) continue;
    as_good = best && step.lost == best->lost ? as_good + 1 : 1;
    if (as_good == 1 || random_.below(as_good) == 0) best = step;
  }
  return best;
}

/// A row takes all levels of this choice, and mostly not if it loses more than it wins.
void PlanRows::force(std::size_t place, const Holds& is_explained, const Holds& is_allowed) {
  Levels& row = asked_[random_.below(static_cast<std::uint32_t>(asked_.size()))];
  Levels moved = row;
  put(place, moved);
  const std::size_t before = missing_.size();
  move(row, moved);
  const double worse = static_cast<double>(missing_.size()) - static_cast<double>(before);
  const double chance = random_.uniform();
  const bool goes = (worse <= 0.0 || chance < std::exp(-worse / kHeat)) &&
                    may_ask(moved, is_explained, is_allowed);
  if (goes) {
    row = std::move(moved);
  } else {
    move(moved, row);
  }
}

/// Choices that no row has are put into rows in turn: tabu search. True when all have a place.
bool PlanRows::settle(std::size_t moves, const Holds& is_explained, const Holds& is_allowed) {
  Barred barred(asked_.size(), varied_.size());
  for (std::size_t vain = 0;
       vain < moves && looks_ < most_looks_ && !missing_.empty() && !asked_.empty(); ++vain) {
    const std::size_t place = missing_[random_.below(static_cast<std::uint32_t>(missing_.size()))];
    const auto missing = static_cast<std::ptrdiff_t>(missing_.size());
    if (missing < barred.fewest) vain = 0;
    barred.fewest = std::min(barred.fewest, missing);
    const auto step = best_step(place, barred, is_explained, is_allowed);
    if (!step) {
      force(place, is_explained, is_allowed);
      continue;
    }
    Levels& row = asked_[step->row];
    Levels moved = row;
    moved[step->factor] = step->level;
    barred.add({.row = step->row, .factor = step->factor, .level = row[step->factor]}, random_);
    move(row, moved);
    row = std::move(moved);
  }
  return missing_.empty();
}

/// A row with this choice that holds no known cause; nothing where there is none.
std::optional<PlanRows::Levels> PlanRows::row_with(std::size_t place, const Holds& is_explained,
                                                   const Holds& is_allowed) {
  Levels wanted(varied_.size(), kAbsent);
  put(place, wanted);
  const auto has = [&](const Levels& levels) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (wanted[i] != kAbsent && wanted[i] != levels[i]) return false;
    }
    return true;
  };
  for (const Levels& of_plan : plan_) {
    if (!has(of_plan)) continue;
    if (may_ask(of_plan, is_explained, is_allowed)) return of_plan;
    for (int tries = 0; tries < kTriesToHeal; ++tries) {
      Levels moved = of_plan;
      for (int changes = 0; changes <= tries / kTriesEach; ++changes) {
        const std::size_t i = random_.below(static_cast<std::uint32_t>(moved.size()));
        if (wanted[i] != kAbsent) continue;
        const std::size_t levels = campaign_.factors[varied_[i]].levels.size();
        moved[i] = random_.below(static_cast<std::uint32_t>(levels));
      }
      if (may_ask(moved, is_explained, is_allowed)) return moved;
    }
  }
  // Where many causes are known, none of these tries may have healed them all.
  Levels least = baseline_;
  put(place, least);
  const bool whole = std::ranges::find(least, kAbsent) == least.end();
  return whole && may_ask(least, is_explained, is_allowed) ? std::optional(least) : std::nullopt;
}

/// As few rows as hold all that is open, none with a known cause.
void PlanRows::plan_rest(const Holds& is_explained, const Holds& is_allowed) {
  most_looks_ = looks_ + kMostLooks;
  may_ask_.clear();
  std::erase_if(asked_, [&](const Levels& row) { return !may_ask(row, is_explained, is_allowed); });
  rows_with_.assign(open_.size(), 0);
  where_.assign(open_.size(), 0);
  missing_.clear();
  for (std::size_t place = 0; place < open_.size(); ++place) {
    if (!open_[place]) continue;
    where_[place] = missing_.size();
    missing_.push_back(place);
  }
  for (const Levels& row : asked_) count(row, true);
  while (!settle(kMovesToAdd, is_explained, is_allowed)) {
    const std::size_t place = missing_.front();
    if (auto row = row_with(place, is_explained, is_allowed)) {
      count(*row, true);
      asked_.push_back(std::move(*row));
      continue;
    }
    open_[place] = false;  // it holds a known cause, or it is forbidden beside all others
    where_[missing_.back()] = 0;
    missing_.front() = missing_.back();
    missing_.pop_back();
  }
  for (bool fewer = true; fewer && asked_.size() > 1 && looks_ < most_looks_;) {
    const std::vector<Levels> before = asked_;
    std::size_t least = SIZE_MAX;
    std::size_t drop = 0;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      std::size_t alone = 0;
      for (const Choice& choice : choices_) {
        const std::size_t place = place_of(choice, asked_[i]);
        alone += place < open_.size() && open_[place] && rows_with_[place] == 1 ? 1 : 0;
      }
      if (alone < least) drop = i;
      least = std::min(least, alone);
    }
    count(asked_[drop], false);
    asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(drop));
    fewer = settle(kMovesToDrop, is_explained, is_allowed);
    if (fewer) continue;
    for (const Levels& row : asked_) count(row, false);
    asked_ = before;
    for (const Levels& row : asked_) count(row, true);
  }
}

/// Near the baseline a wall has few causes, and those are found in few tests.
std::optional<Configuration> PlanRows::nearest() {
  std::optional<std::size_t> best;
  std::size_t least = SIZE_MAX;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (open_in(asked_[i]) == 0) continue;
    std::size_t far = 0;
    for (std::size_t j = 0; j < baseline_.size(); ++j) far += asked_[i][j] != baseline_[j] ? 1 : 0;
    if (far < least) best = i;
    least = std::min(least, far);
  }
  if (!best) return std::nullopt;
  const Configuration row = row_of(asked_[*best]);
  asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(*best));
  return row;
}

std::optional<Configuration> PlanRows::next(const Session& session, const Holds& is_explained,
                                            const Holds& is_allowed) {
  if (covers_) look_at_tests(session);
  while (next_ < rows_.size() && (!moves_ || next_ < by_name_)) {
    const Configuration& row = rows_[next_++];
    if (is_explained(row)) continue;
    if (next_ > by_name_ && covers_ && open_in(levels_of(row)) == 0) continue;
    return row;
  }
  if (!moves_) return std::nullopt;
  const bool first = plan_.empty();
  if (first) {
    for (const Configuration& row : rows_) plan_.push_back(levels_of(row));
    asked_ = plan_;
    baseline_ = levels_of(session.configuration(session.baseline()));
  }
  std::erase_if(asked_, [&](const Levels& row) { return open_in(row) == 0; });
  const bool searched = session.asked() > seen_ + 1 ||
                        std::any_of(asked_.begin(), asked_.end(),
                                    [&](const Levels& row) { return is_explained(row_of(row)); });
  seen_ = session.asked();
  if (first || searched) plan_rest(is_explained, is_allowed);
  if (auto row = nearest()) return row;
  if (std::find(open_.begin(), open_.end(), true) == open_.end()) return std::nullopt;
  plan_rest(is_explained, is_allowed);  // what only walls had
  return nearest();
}

}  // namespace greynic::causal
