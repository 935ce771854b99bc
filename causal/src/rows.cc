#include <algorithm>
#include <cmath>

#include "session.h"

/// Where a row of configurations turns into a wall.

namespace greynic::causal {
namespace {

constexpr std::size_t kLongRow = 12;     // tests, as in small noise,
constexpr std::size_t kLongSearch = 20;  // and of all rows together
constexpr std::size_t kLongForBaseline = 12;
constexpr double kBaselineKnown = 0.3;  // its error, of the way from it to the bound
constexpr double kFarFromBound = 8.0;   // log odds of what one test shows to be clear
constexpr double kConfirmed = 0.5;      // share of a mean that other configurations have too
constexpr double kFirstLikely = 0.2;    // odds of a first step that is asked by itself
constexpr double kLeastToHeal = 0.4;    // odds of a step that may be healed
constexpr double kHealingServes =
    1.0;                             // what a healed wall that is clear is worth elsewhere, in bits
constexpr double kSurelyStep = 5.0;  // log odds of a step that tells how deep its cause is
constexpr double kBeyondLast =
    0.003;  // odds that to heal what comes after the last term clears the wall
constexpr double kFurtherTerms = 1.2;  // terms of a cause below the last one, as they are mostly
constexpr double kShows = 0.8;         // odds that a further cause shows where a term is healed
constexpr double kAsDeep = 0.5;        // and that a wall which has one is no deeper for it;
constexpr double kDeeperBy = 25.0;     // if it is, by up to so many noises

double bits_of(double chance) {
  if (!(chance > 0.0) || !(chance < 1.0)) return 0.0;
  return -chance * std::log2(chance) - (1.0 - chance) * std::log2(1.0 - chance);
}

/// Odds that this healed wall is clear if `first` is the first wall of the row; none is: not told.
double clear_if_first(const Row& row, std::size_t healed, std::size_t first, bool further) {
  if (first == row.steps.size()) return 0.5;
  if (first < healed) return kBeyondLast;
  const double shows = further ? kShows : kBeyondLast;
  if (first == healed) return 1.0 - shows;
  return (1.0 - shows) * std::min(0.5, kFurtherTerms / static_cast<double>(first));
}

double mean_of(const std::vector<double>& scores) {
  double sum = 0.0;
  for (const double score : scores) sum += score;
  return sum / static_cast<double>(scores.size());
}

}  // namespace

/// Log odds that the whole wall holds a further cause: the least step that is a wall is less deep, or what
/// was healed is.
double Session::further_by_depth(const Row& row, const std::vector<HealedStep>& healed) const {
  const std::vector<double> whole = scores_of(row.whole);
  double odds = std::log(row.further / (1.0 - row.further));
  const auto add = [&](Id id) {
    const std::vector<double> scores = scores_of(id);
    if (whole.empty() || scores.empty() || id == row.whole) return;
    const double error = model_.sigma() * std::sqrt(1.0 / static_cast<double>(scores.size()) +
                                                    1.0 / static_cast<double>(whole.size()));
    const double z = (mean_of(whole) - mean_of(scores)) / error;
    const double same = 0.4 / (1.0 + 0.1 * std::pow(z, 4));  // a stall must not make it sure
    const double deeper = z > 0.0 ? 1.0 / kDeeperBy : 0.0;
    odds += std::log(kAsDeep + (1.0 - kAsDeep) * deeper / same);
  };
  const auto is_wall = [&](Id id) { return tests_of(id) > 0 && evidence(id) > kSurelyStep; };
  const auto least = std::find_if(row.steps.begin(), row.steps.end(), is_wall);
  if (least != row.steps.end()) add(*least);
  for (const HealedStep& one : healed) {
    if (is_wall(one.id)) add(one.id);
  }
  return odds;
}

Session::RowOdds Session::odds_of(const Row& row, const std::vector<HealedStep>& healed) const {
  const std::size_t count = row.steps.size();
  std::vector<double> weight(count + 1, 0.0);
  double sum = 0.0;
  weight[count] = std::log(std::max(row.never, 1e-300));
  for (std::size_t i = count; i-- > 0;) {
    sum += evidence(row.steps[i]);
    weight[i] = row.before[i] > 0.0 ? std::log(row.before[i]) + sum : -1e300;
  }
  std::vector<double> with_further;
  if (row.heal) {
    with_further = weight;
    const double further = further_by_depth(row, healed);
    for (std::size_t i = 0; i <= count; ++i) {
      for (const HealedStep& one : healed) {
        const double wall = std::exp(evidence(one.id));
        const double alone = clear_if_first(row, one.step, i, false);
        const double beside = clear_if_first(row, one.step, i, true);
        weight[i] += std::log(alone + (1.0 - alone) * wall);
        with_further[i] += std::log(beside + (1.0 - beside) * wall);
      }
      with_further[i] += further;
    }
  }
  double best = -1e300;
  for (const double one : weight) best = std::max(best, one);
  for (const double one : with_further) best = std::max(best, one);
  RowOdds odds;
  double all = 0.0;
  for (std::size_t i = 0; i <= count; ++i) {
    const double beside = with_further.empty() ? 0.0 : std::exp(with_further[i] - best);
    odds.first.push_back(std::exp(weight[i] - best) + beside);
    odds.further += beside;
    all += odds.first.back();
  }
  for (double& one : odds.first) one /= all;
  odds.further /= all;
  return odds;
}

/// The steps to test next: where the odds are parted into equal shares.
std::vector<Id> Session::questions(const Row& row, const std::vector<double>& chances) const {
  std::vector<Id> chosen;
  if (row.ask_first && tests_of(row.steps.front()) == 0 && chances.front() > kFirstLikely) {
    chosen.push_back(row.steps.front());
  }
  const int shares = options_.batch + 1 - static_cast<int>(chosen.size());
  for (int share = 1; share < shares; ++share) {
    const double wanted = static_cast<double>(share) / shares;
    double sum = 0.0;
    double nearest = 2.0;
    std::optional<Id> best;
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      sum += chances[i];
      if (refused(row.steps[i])) continue;
      const double far = std::abs(sum - wanted);
      if (far < nearest) {
        nearest = far;
        best = row.steps[i];
      }
    }
    if (best && std::find(chosen.begin(), chosen.end(), *best) == chosen.end()) {
      chosen.push_back(*best);
    }
  }
  return chosen;
}

/// A step whose healing tells more than any step of the row, beside what it serves elsewhere.
std::optional<HealedStep> Session::worth_healing(const Row& row, const RowOdds& odds) const {
  if (!row.heal) return std::nullopt;
  double most = 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < row.steps.size(); ++i) {
    sum += odds.first[i];
    most = std::max(most, bits_of(sum));
  }
  const double stays = odds.further * kShows;
  std::optional<HealedStep> best;
  for (std::size_t i = 1; i < row.steps.size(); ++i) {
    if (odds.first[i] < kLeastToHeal) continue;
    const double clear = odds.first[i] * (1.0 - stays);
    const double told = bits_of(clear) - odds.first[i] * bits_of(stays) + kHealingServes * clear;
    if (told <= most) continue;
    const auto id = row.heal(i);
    if (!id || tests_of(*id) > 0 || refused(*id)) continue;
    best = HealedStep{i, *id};
    most = told;
  }
  return best;
}

bool Session::baseline_is_vague(std::size_t tests_of_row) const {
  return is_relative(campaign_.wall) && tests_of_row >= kLongForBaseline &&
         3 * tests_of(baseline_) < tests_of_row + kLongForBaseline &&
         model_.baseline_error() > kBaselineKnown * (model_.bound() - model_.baseline());
}

/// Next to where a slope crosses the bound one value may be far off, and no other configuration is
/// there to show it.
std::vector<Id> Session::seen_once(const Row& row, const Place& place) const {
  std::vector<Id> once;
  for (std::size_t step = place.step - std::min<std::size_t>(place.step, 1);
       by_bound_ && step <= place.step && step < row.steps.size(); ++step) {
    if (row.last_is_known && step + 1 == row.steps.size()) continue;
    const Id id = row.steps[step];
    const bool far_off = evidence(id) > -kFarFromBound;  // no stall makes a test faster
    if (tests_of(id) == 1 && asked_[id].known < kConfirmed && far_off && !refused(id)) {
      once.push_back(id);
    }
  }
  if (std::ssize(once) > options_.batch) once.resize(static_cast<std::size_t>(options_.batch));
  return once;
}

/// Where levels are judged by the bound, walls next to it say little of how deep the others are; and a row
/// of levels bears more noise than one of settings, for no other row rests on it.
Result<void> Session::stay(std::size_t tests_of_question) {
  const bool is_long = tests_of_question >= kLongRow || tests_ >= leave_from_ + kLongSearch;
  if (!leave_when_noisy_ || !is_long || !is_noisy(*leave_when_noisy_, !by_bound_)) return {};
  left_ = true;
  return fail(ErrorCode::kAllowanceSpent, "noise is too large to go step by step");
}

std::optional<Id> Session::next_question(const Row& row) const {
  const std::vector<Id> next = questions(row, odds_of(row, {}).first);
  return next.empty() ? std::nullopt : std::optional(next.front());
}

Result<Place> Session::first_wall(const Row& row, double error) {
  const std::size_t begun = tests_;
  std::vector<HealedStep> healed;
  while (true) {
    const std::size_t taken = tests_ - begun;
    if (auto still = stay(taken); !still) return pass_on(still);
    const RowOdds odds = odds_of(row, healed);
    const std::vector<double>& chance = odds.first;
    double sum = 0.0;
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      sum += chance[i];
      asked_[row.steps[i]].belief = sum;
    }
    const auto best = std::max_element(chance.begin(), chance.end());
    const std::size_t step = static_cast<std::size_t>(best - chance.begin());
    Place place{.step = step,
                .confidence = *best,
                .never = step == row.steps.size(),
                .further = odds.further};
    std::vector<Id> next = seen_once(row, place);
    if (next.empty()) {
      if (*best >= 1.0 - error || (place.never && *best > 0.9)) return place;
      next = questions(row, chance);
      if (const auto one = worth_healing(row, odds)) {
        healed.push_back(*one);
        if (auto done = measure({&one->id, 1}, "healing what may be a term"); !done)
          return pass_on(done);
        continue;
      }
    }
    std::erase_if(next, [&](Id id) { return hopeless(id); });
    if (next.empty()) return place;
    ask_baseline_first(next);
    if (baseline_is_vague(taken)) next = {baseline_};
    if (auto done = measure(next, row.why); !done) return pass_on(done);
  }
}

}  // namespace greynic::causal
