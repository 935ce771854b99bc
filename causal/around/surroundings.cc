#include "surroundings.h"

#include <algorithm>
#include <cmath>

#include "greynic/statistics/distributions.h"
#include "greynic/statistics/mean.h"
#include "greynic/statistics/shrunk_variance.h"

namespace greynic::causal {
namespace {

constexpr double kFailed = 20.0;      // times worse than the baseline
constexpr double kLeastRatio = 1e-3;  // of a value that is zero

/// Levels of a number from the baseline's to the wall's, and those next to the wall's.
void add_levels(const Factor* known, Moved& moved) {
  const double* base = std::get_if<double>(&moved.base);
  const double* wall = std::get_if<double>(&moved.wall);
  moved.others = {moved.base};
  if (base == nullptr || wall == nullptr || known == nullptr) return;
  std::vector<double> numbers = {*base, *wall};
  for (const FactorValue& level : known->levels) {
    if (const double* number = std::get_if<double>(&level)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (*base > *wall) std::reverse(numbers.begin(), numbers.end());
  const auto at_base = std::find(numbers.begin(), numbers.end(), *base);
  const auto at_wall = std::find(numbers.begin(), numbers.end(), *wall);
  moved.others.assign(at_base, at_wall);
  if (at_wall - at_base > 1) moved.weaker = *(at_wall - 1);
  if (at_wall + 1 != numbers.end()) moved.stronger = *(at_wall + 1);
}

}  // namespace

Surroundings::Surroundings(const Campaign& campaign, const Configuration& baseline,
                           const Configuration& wall, double expected,
                           const ExplainOptions& options, const Laboratory& laboratory)
    : campaign_(campaign),
      baseline_(baseline),
      wall_(wall),
      expected_(expected),
      options_(options),
      laboratory_(laboratory) {
  for (const auto& [name, level] : wall.levels()) {
    const FactorValue* base = baseline.find(name);
    if (base == nullptr || *base == level) continue;
    Moved moved{name, *base, level, {}, {}, {}};
    add_levels(campaign.find(name), moved);
    settings_.push_back(std::move(moved));
  }
}

bool Surroundings::allows(const Configuration& whole) const {
  return !laboratory_.allows || laboratory_.allows(whole);
}

std::optional<double> Surroundings::score_of(const Observation& observation) const {
  const bool more_is_worse = campaign_.wall.above || campaign_.wall.above_baseline_by;
  switch (observation.outcome) {
    case Outcome::kMeasured:
      if (const auto value = observation.value(campaign_.wall.metric)) {
        return std::log(std::max(*value / expected_, kLeastRatio));
      }
      return std::nullopt;
    case Outcome::kFailed:
    case Outcome::kTimedOut:
      return more_is_worse ? std::log(kFailed) : -std::log(kFailed);
    case Outcome::kTooShort:
    case Outcome::kRefused:
    case Outcome::kNotRun:
      break;
  }
  return std::nullopt;
}

Result<void> Surroundings::test(const std::vector<Configuration>& wanted, std::size_t each,
                                const std::string& why) {
  std::vector<Configuration> open;
  for (const Configuration& one : wanted) {
    std::size_t have = tested_[one.name()].observations.size();
    have += static_cast<std::size_t>(std::count(open.begin(), open.end(), one));
    for (; have < each; ++have) open.push_back(one);
  }
  const std::size_t batch = static_cast<std::size_t>(options_.batch);
  for (std::size_t begin = 0; begin < open.size(); begin += batch) {
    if (laboratory_.progress) laboratory_.progress(tests_, why);
    const std::span<const Configuration> some(open.data() + begin,
                                              std::min(batch, open.size() - begin));
    auto made = laboratory_.measure(some);
    if (!made) return pass_on(made);
    tests_ += made->size();
    for (Observation& one : *made) {
      Tested& tested = tested_[one.asked.name()];
      if (const auto score = score_of(one)) tested.scores.push_back(*score);
      tested.observations.push_back(std::move(one));
    }
  }
  return {};
}

const std::vector<double>& Surroundings::scores(const Configuration& configuration) const {
  static const std::vector<double> none;
  const auto found = tested_.find(configuration.name());
  return found == tested_.end() ? none : found->second.scores;
}

const std::vector<Observation>& Surroundings::observations(
    const Configuration& configuration) const {
  static const std::vector<Observation> none;
  const auto found = tested_.find(configuration.name());
  return found == tested_.end() ? none : found->second.observations;
}

std::optional<double> Surroundings::mean_score(const Configuration& configuration) const {
  const std::vector<double>& all = scores(configuration);
  if (all.empty()) return std::nullopt;
  return statistics::mean_of(all).value;
}

Surroundings::Noise Surroundings::noise() const {
  double squares = 0.0;
  double freedom = 0.0;
  for (const auto& [name, tested] : tested_) {
    if (tested.scores.size() < 2) continue;
    squares += statistics::squares_of(tested.scores);
    freedom += static_cast<double>(tested.scores.size()) - 1.0;
  }
  return {freedom > 0.0 ? squares / freedom : 0.0, freedom};
}

std::optional<Estimate> Surroundings::ratio(const Configuration& one,
                                            const Configuration& other) const {
  const auto a = mean_score(one);
  const auto b = mean_score(other);
  const Noise known = noise();
  if (!a || !b || known.freedom <= 0.0) return std::nullopt;
  const double counts = 1.0 / static_cast<double>(scores(one).size()) +
                        1.0 / static_cast<double>(scores(other).size());
  const double half =
      std::sqrt(known.variance * counts) *
      statistics::student_upper_quantile((1.0 - options_.confidence) / 2.0, known.freedom);
  return Estimate{std::exp(*a - *b), std::exp(*a - *b - half), std::exp(*a - *b + half)};
}

}  // namespace greynic::causal
