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
constexpr double kConfirmed = 0.5;      // share of a mean that other configurations have too
constexpr double kFirstLikely = 0.2;    // odds of a first step that is asked by itself

}  // namespace

/// The chance of each step to be the first wall; the last entry is that none is.
std::vector<double> Session::chances(const Row& row) const {
  const std::size_t count = row.steps.size();
  std::vector<double> weight(count + 1, 0.0);
  double sum = 0.0;
  weight[count] = std::log(std::max(row.never, 1e-300));
  double best = weight[count];
  for (std::size_t i = count; i-- > 0;) {
    sum += evidence(row.steps[i]);
    weight[i] = row.before[i] > 0.0 ? std::log(row.before[i]) + sum : -1e300;
    best = std::max(best, weight[i]);
  }
  double all = 0.0;
  for (double& one : weight) all += one = std::exp(one - best);
  for (double& one : weight) one /= all;
  return weight;
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
    const Id id = row.steps[step];
    if (tests_of(id) == 1 && asked_[id].known < kConfirmed && !refused(id)) once.push_back(id);
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

Result<Place> Session::first_wall(const Row& row, double error) {
  const std::size_t begun = tests_;
  while (true) {
    const std::size_t taken = tests_ - begun;
    if (auto still = stay(taken); !still) return pass_on(still);
    const std::vector<double> chance = chances(row);
    double sum = 0.0;
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      sum += chance[i];
      asked_[row.steps[i]].belief = sum;
    }
    const auto best = std::max_element(chance.begin(), chance.end());
    const std::size_t step = static_cast<std::size_t>(best - chance.begin());
    Place place{.step = step, .confidence = *best, .never = step == row.steps.size()};
    std::vector<Id> next = seen_once(row, place);
    if (next.empty()) {
      if (*best >= 1.0 - error || (place.never && *best > 0.9)) return place;
      next = questions(row, chance);
    }
    std::erase_if(next, [&](Id id) { return hopeless(id); });
    if (next.empty()) return place;
    ask_baseline_first(next);
    if (baseline_is_vague(taken)) next = {baseline_};
    if (auto done = measure(next, row.why); !done) return pass_on(done);
  }
}

}  // namespace greynic::causal
