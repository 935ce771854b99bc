#include "planted.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace greynic::bench {
namespace {

constexpr double kGood = 100.0;
constexpr std::size_t kLeastSlope = 3;  // levels from the baseline's to the witness's

std::size_t level_index(const Factor& factor, const FactorValue& value) {
  return static_cast<std::size_t>(std::find(factor.levels.begin(), factor.levels.end(), value) -
                                  factor.levels.begin());
}

double log2_choose(double n, double k) {
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

/// Bits that one test tells of a fair coin: walls score `apart` noises from clear, and a share of
/// the tests stalls or times out whatever is set.
double capacity(double apart, double lost) {
  double bits = 0.0;
  const double step = 0.01;
  const auto density = [](double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); };
  for (double x = -8.0; x < apart + 8.0; x += step) {
    const double clear = density(x);
    const double wall = density(x - apart);
    const double all = 0.5 * (clear + wall);
    if (clear > 1e-300) bits += 0.5 * step * clear * std::log2(clear / all);
    if (wall > 1e-300) bits += 0.5 * step * wall * std::log2(wall / all);
  }
  return std::max(bits, 1e-6) * (1.0 - lost);
}

}  // namespace

PlantedCase::PlantedCase(const Family& family, std::uint64_t seed)
    : family_(family), random_(seed) {
  noise_ = family.noise[below(family.noise.size())];
  stalls_ = uniform(0.0, family.most_stalls + 1e-12);
  timeouts_ = uniform(0.0, family.most_timeouts + 1e-12);
  slow_after_ = family.sticky;
  if (family.most_sticky > family.sticky)
    slow_after_ +=
        static_cast<int>(below(static_cast<std::size_t>(family.most_sticky - family.sticky) + 1));
  drift_ = family.drift * (below(2) == 0 ? -1.0 : 1.0);
  product_ = below(2) == 0;
  make_factors();
  make_causes();
  if (family.most_forbidden > 0) make_forbidden();
  campaign.name = "planted";
  double least = 1.0;
  for (const PlantedCause& cause : causes) least = std::min(least, cause.drop);
  const double share = family.false_alarm ? 0.1 : least * uniform(0.4, 0.75);
  campaign.wall = {"bandwidth_gbps", share, {}, {}, {}};
  if (family.absolute) campaign.wall = {"bandwidth_gbps", {}, {}, kGood * (1.0 - share), {}};
  if (family.planned) campaign.design = {.kind = DesignKind::kCovering, .strength = 3};
  if (family.most_decoys > 0) make_log();
}

void PlantedCase::make_factors() {
  const std::size_t count =
      static_cast<std::size_t>(family_.least_factors) +
      below(static_cast<std::size_t>(family_.most_factors - family_.least_factors) + 1);
  for (std::size_t i = 0; i < count; ++i) {
    Factor factor;
    const std::size_t kind = below(10);
    factor.name = fmt::format("f{:03}", i);
    if (family_.numbers && kind < 4) {
      const std::size_t levels = 8 + below(57);
      double level = static_cast<double>(below(5));
      for (std::size_t k = 0; k < levels; ++k) {
        factor.levels.emplace_back(level);
        level += 1.0 + static_cast<double>(below(4));
      }
    } else if (kind < 7) {
      factor.type = FactorType::kBool;
      factor.levels = {false, true};
    } else {
      factor.type = FactorType::kCategorical;
      const std::size_t levels = family_.numbers ? 2 + below(4) : 2;
      for (std::size_t k = 0; k < levels; ++k) factor.levels.emplace_back(fmt::format("l{}", k));
    }
    const std::size_t levels = factor.levels.size();
    const std::size_t base = below(levels);
    std::size_t wall = below(levels - 1);
    if (wall >= base) ++wall;
    of_baseline_.push_back(base);
    of_witness_.push_back(wall);
    campaign.baseline.set(factor.name, factor.levels[base]);
    witness.set(factor.name, factor.levels[wall]);
    campaign.factors.push_back(std::move(factor));
  }
}

/// A term that holds at the witness's level and not at the baseline's.
PlantedTerm PlantedCase::term_of(std::size_t index) {
  const Factor& factor = campaign.factors[index];
  const std::size_t base = of_baseline_[index];
  const std::size_t wall = of_witness_[index];
  PlantedTerm term{index, {wall}};
  if (factor.type == FactorType::kCategorical) {
    for (std::size_t k = 0; k < factor.levels.size(); ++k) {
      if (k != base && below(4) == 0) term.levels.insert(k);
    }
    return term;
  }
  if (factor.type != FactorType::kNumeric) return term;
  const std::size_t gap = base < wall ? wall - base : base - wall;
  const std::size_t inside = below(gap);  // levels between the wall's and the edge
  const std::size_t last = factor.levels.size() - 1;
  std::size_t low = base < wall ? wall - inside : 0;
  std::size_t high = base < wall ? last : wall + inside;
  if (uniform(0.0, 1.0) < family_.intervals) {
    if (base < wall && wall < last) high = wall + below(last - wall);
    if (base > wall && wall > 0) low = 1 + below(wall);
  }
  for (std::size_t k = low; k <= high; ++k) term.levels.insert(k);
  return term;
}

PlantedTerm PlantedCase::take_term(std::vector<std::size_t>& free) {
  const std::size_t factor = free.back();
  free.pop_back();
  return term_of(factor);
}

void PlantedCase::make_sum(PlantedCause& cause, std::vector<std::size_t>& free) {
  std::vector<std::size_t> numbers;
  for (const std::size_t i : free) {
    if (campaign.factors[i].type == FactorType::kNumeric && of_witness_[i] > of_baseline_[i] + 1) {
      numbers.push_back(i);
    }
  }
  if (numbers.size() < 2) return;
  cause.sum = {numbers[0], numbers[1]};
  double base[2], wall[2];
  for (int k = 0; k < 2; ++k) {
    const std::size_t i = cause.sum[static_cast<std::size_t>(k)];
    base[k] = std::get<double>(campaign.factors[i].levels[of_baseline_[i]]);
    wall[k] = std::get<double>(campaign.factors[i].levels[of_witness_[i]]);
    std::erase(free, i);
  }
  // Neither of the two alone.
  const double low = std::max(wall[0] + base[1], base[0] + wall[1]) + 1.0;
  cause.least = std::floor(uniform(low, wall[0] + wall[1] + 0.999));
}

void PlantedCase::make_causes() {
  if (family_.false_alarm) return;
  const int count = family_.least_causes +
                    static_cast<int>(below(
                        static_cast<std::size_t>(family_.most_causes - family_.least_causes) + 1));
  std::vector<std::size_t> free(campaign.factors.size());
  for (std::size_t i = 0; i < free.size(); ++i) free[i] = i;
  std::shuffle(free.begin(), free.end(), random_);
  if (family_.slopes) {  // terms are taken from the end
    std::stable_partition(free.begin(), free.end(), [&](std::size_t i) {
      const std::size_t base = of_baseline_[i];
      const std::size_t wall = of_witness_[i];
      return campaign.factors[i].type != FactorType::kNumeric ||
             (base < wall ? wall - base : base - wall) < kLeastSlope;
    });
    steepest_clear_ = uniform(0.3, 0.75);
  }
  for (int c = 0; c < count; ++c) {
    PlantedCause cause;
    cause.drop = uniform(family_.least_drop, family_.most_drop);
    int order = family_.least_order +
                static_cast<int>(
                    below(static_cast<std::size_t>(family_.most_order - family_.least_order) + 1));
    if (family_.sum && c == 0) {
      make_sum(cause, free);
      order = cause.sum.empty() ? std::max(order, 1) : order - 1;
    }
    if (family_.overlap && c > 0 && order > 1 && causes[0].terms.size() > 1) {
      const auto& shared = causes[0].terms[below(causes[0].terms.size())];
      cause.terms.push_back(shared);
      --order;
    }
    for (; order > 0; --order) cause.terms.push_back(take_term(free));
    causes.push_back(std::move(cause));
  }
  make_healers(free);
  if (family_.emergent) {
    // Awake only where a setting of the first cause is healed.
    const PlantedTerm& healed = causes[0].terms[below(causes[0].terms.size())];
    PlantedCause cause;
    cause.emergent = true;
    cause.drop = uniform(family_.least_drop, family_.most_drop);
    cause.terms.push_back({healed.factor, {of_baseline_[healed.factor]}});
    const int order = 1 + static_cast<int>(below(2));
    for (int i = 0; i < order; ++i) cause.terms.push_back(take_term(free));
    causes.push_back(std::move(cause));
  }
}

/// What heals a wall is set in the witness. So is what undoes that, or else the cause does not show there.
void PlantedCase::make_healers(std::vector<std::size_t>& free) {
  if (family_.healed) {
    causes.front().healers = {take_term(free)};
    causes.front().undoers = {take_term(free)};
  }
  if (family_.hidden) {
    PlantedCause cause;
    cause.drop = uniform(family_.least_drop, family_.most_drop);
    cause.terms = {take_term(free)};
    cause.healers = {take_term(free)};
    causes.push_back(std::move(cause));
  }
}

void PlantedCase::make_forbidden() {
  const std::size_t wanted = 1 + below(static_cast<std::size_t>(family_.most_forbidden));
  for (std::size_t tries = 0; tries < 20 * wanted && campaign.forbidden.size() < wanted; ++tries) {
    const std::size_t a = below(campaign.factors.size());
    const std::size_t b = below(campaign.factors.size());
    if (a == b) continue;
    // Half of them tie a setting of the wall to one of the baseline.
    const bool between = below(2) == 0;
    const std::size_t la = between ? of_witness_[a] : below(campaign.factors[a].levels.size());
    const std::size_t lb = between ? of_baseline_[b] : below(campaign.factors[b].levels.size());
    Configuration pair;
    pair.set(campaign.factors[a].name, campaign.factors[a].levels[la]);
    pair.set(campaign.factors[b].name, campaign.factors[b].levels[lb]);
    campaign.forbidden.push_back(pair);
    bool fits = allowed(campaign.baseline) && allowed(witness);
    // Each cause must be reachable alone, and each of its terms must be seen to be one.
    for (std::size_t c = 0; c < causes.size() && fits; ++c) {
      for (std::size_t without = 0; without <= causes[c].terms.size() && fits; ++without) {
        Configuration alone = campaign.baseline;
        for (std::size_t t = 0; t < causes[c].terms.size(); ++t) {
          const std::size_t f = causes[c].terms[t].factor;
          if (t != without)
            alone.set(campaign.factors[f].name, *witness.find(campaign.factors[f].name));
        }
        fits = allowed(alone);
      }
    }
    if (!fits) campaign.forbidden.pop_back();
  }
}

/// Half of the factors as in the witness; all terms of a cause where a wall is wanted.
Configuration PlantedCase::run_of_log(bool wall) {
  Configuration run = campaign.baseline;
  std::set<std::size_t> terms;
  if (wall) {
    for (const PlantedTerm& term : causes[below(causes.size())].terms) terms.insert(term.factor);
  }
  for (std::size_t i = 0; i < campaign.factors.size(); ++i) {
    const std::string& name = campaign.factors[i].name;
    if (below(2) == 0 || terms.contains(i)) run.set(name, *witness.find(name));
  }
  return run;
}

/// Whoever ran it set the decoys whenever there was a wall, and seldom else. Where there was trouble,
/// they were set too: it made the run slow, and the campaign does not know of it.
void PlantedCase::make_log() {
  std::vector<std::size_t> innocent;
  for (std::size_t i = 0; i < campaign.factors.size(); ++i) {
    const bool term = std::any_of(causes.begin(), causes.end(), [&](const PlantedCause& cause) {
      return std::any_of(cause.terms.begin(), cause.terms.end(),
                         [&](const PlantedTerm& one) { return one.factor == i; });
    });
    if (!term) innocent.push_back(i);
  }
  std::shuffle(innocent.begin(), innocent.end(), random_);
  innocent.resize(
      std::min(innocent.size(), 1 + below(static_cast<std::size_t>(family_.most_decoys))));
  log = {measure(campaign.baseline), measure(campaign.baseline), measure(witness)};
  const std::size_t runs = 30 + below(30);
  for (std::size_t tries = 0; tries < 20 * runs && log.size() < runs; ++tries) {
    const bool trouble = uniform(0.0, 1.0) < family_.troubled;
    Configuration run = run_of_log(!trouble && below(2) == 0);
    const bool decoys = (trouble || is_wall(run)) != (below(20) == 0);
    for (const std::size_t i : innocent) {
      const std::string& name = campaign.factors[i].name;
      run.set(name, *(decoys ? witness : campaign.baseline).find(name));
    }
    if (!allowed(run)) continue;
    log.push_back(measure(run));
    const auto value = log.back().value(campaign.wall.metric);
    if (trouble && value) {
      const double left = 1.0 - uniform(family_.least_drop, family_.most_drop);
      log.back().measures[campaign.wall.metric] = {*value * left, {}};
    }
  }
  tests = 0;
}

bool PlantedCase::allowed(const Configuration& configuration) const {
  return std::none_of(
      campaign.forbidden.begin(), campaign.forbidden.end(), [&](const Configuration& pair) {
        return std::all_of(pair.levels().begin(), pair.levels().end(), [&](const auto& one) {
          const FactorValue* value = configuration.find(one.first);
          return value != nullptr && *value == one.second;
        });
      });
}

bool PlantedCase::holds(const PlantedTerm& term, const Configuration& configuration) const {
  const Factor& factor = campaign.factors[term.factor];
  return term.levels.contains(level_index(factor, *configuration.find(factor.name)));
}

bool PlantedCase::holds(const PlantedCause& cause, const Configuration& configuration) const {
  const auto one_holds = [&](const PlantedTerm& term) { return holds(term, configuration); };
  if (!std::all_of(cause.terms.begin(), cause.terms.end(), one_holds)) return false;
  if (std::any_of(cause.healers.begin(), cause.healers.end(), one_holds) &&
      std::none_of(cause.undoers.begin(), cause.undoers.end(), one_holds)) {
    return false;
  }
  double sum = 0.0;
  for (const std::size_t i : cause.sum) {
    sum += std::get<double>(*configuration.find(campaign.factors[i].name));
  }
  return cause.sum.empty() || sum >= cause.least;
}

bool PlantedCase::is_wall(const Configuration& configuration) const {
  return std::any_of(causes.begin(), causes.end(),
                     [&](const PlantedCause& cause) { return holds(cause, configuration); });
}

/// How deep a wall one term of a slope allows, in logarithms. Up to the last clear level it rises to a share
/// of the bound, from the first wall on it begins as far beyond the bound.
double PlantedCase::depth(const PlantedTerm& term, const PlantedCause& cause,
                          const Configuration& configuration) const {
  const double deepest = -std::log1p(-cause.drop);
  const Factor& factor = campaign.factors[term.factor];
  if (factor.type != FactorType::kNumeric) return holds(term, configuration) ? deepest : 0.0;
  const auto place = [](std::size_t index) { return static_cast<double>(index); };
  const double base = place(of_baseline_[term.factor]);
  const double up = place(of_witness_[term.factor]) > base ? 1.0 : -1.0;
  const double edge = up * (place(up > 0 ? *term.levels.begin() : *term.levels.rbegin()) - base);
  const double most = up * (place(of_witness_[term.factor]) - base);
  const double here = up * (place(level_index(factor, *configuration.find(factor.name))) - base);
  const double bound = -std::log1p(-*campaign.wall.below_baseline_by);
  if (here <= 0.0) return 0.0;
  if (here < edge) return steepest_clear_ * bound * here / (edge - 1.0);
  const double least = std::min((2.0 - steepest_clear_) * bound, deepest);
  if (here >= most) return deepest;
  return least + (deepest - least) * (here - edge) / (most - edge);
}

/// The share of the rate that a cause leaves.
double PlantedCase::left_by(const PlantedCause& cause, const Configuration& configuration) const {
  if (!family_.slopes) return holds(cause, configuration) ? 1.0 - cause.drop : 1.0;
  double least = -std::log1p(-cause.drop);
  for (const PlantedTerm& term : cause.terms) {
    least = std::min(least, depth(term, cause, configuration));
  }
  return std::exp(-least);
}

Observation PlantedCase::measure(const Configuration& configuration) {
  ++tests;
  Observation observation;
  observation.asked = configuration;
  if (uniform(0.0, 1.0) < timeouts_) {
    observation.outcome = Outcome::kTimedOut;
    observation.reason = "no answer";
    return observation;
  }
  double left = 1.0;
  bool wall = false;
  for (const PlantedCause& cause : causes) {
    wall = wall || holds(cause, configuration);
    const double by_cause = left_by(cause, configuration);
    left = product_ ? left * by_cause : std::min(left, by_cause);
  }
  if (slow_for_ > 0) {
    --slow_for_;
    left = std::min(left, 1.0 - family_.most_drop);
  }
  if (wall) slow_for_ = slow_after_;
  if (uniform(0.0, 1.0) < stalls_) left *= uniform(0.2, 0.8);
  const double draw = std::normal_distribution<double>(0.0, noise_)(random_);
  const double drifted = drift_ * std::sin(static_cast<double>(tests) / 60.0);
  observation.outcome = Outcome::kMeasured;
  observation.measures["bandwidth_gbps"] = {kGood * left * std::exp(draw + drifted), {}};
  return observation;
}

causal::Laboratory PlantedCase::laboratory() {
  causal::Laboratory laboratory;
  laboratory.measure = [this](std::span<const Configuration> wanted) {
    std::vector<Observation> made;
    for (const Configuration& one : wanted) made.push_back(measure(one));
    return Result<std::vector<Observation>>(std::move(made));
  };
  return laboratory;
}

PlantedCase::Bound PlantedCase::bound() const {
  Bound bits;
  if (causes.empty()) return bits;
  double healings = 1.0;
  double drop = 1.0;
  for (const PlantedCause& cause : causes) {
    const double order = static_cast<double>(cause.terms.size() + cause.sum.size());
    bits.structure += log2_choose(static_cast<double>(campaign.factors.size()), order);
    healings *= cause.emergent ? 1.0 : order;
    drop = std::min(drop, cause.drop);
    for (const PlantedTerm& term : cause.terms) {
      const Factor& factor = campaign.factors[term.factor];
      const std::size_t base = of_baseline_[term.factor];
      const std::size_t wall = of_witness_[term.factor];
      if (factor.type == FactorType::kCategorical)
        bits.levels += static_cast<double>(factor.levels.size()) - 2.0;
      if (factor.type != FactorType::kNumeric || cause.emergent) continue;
      bits.levels += std::log2(static_cast<double>(base < wall ? wall - base : base - wall));
      const std::size_t beyond = base < wall ? factor.levels.size() - 1 - wall : wall;
      if (beyond == 0) continue;
      const std::size_t last = base < wall ? factor.levels.size() - 1 : 0;
      bits.levels += 1.0;
      if (!term.levels.contains(last)) bits.levels += std::log2(static_cast<double>(beyond));
    }
    if (!cause.sum.empty()) bits.levels += 8.0;
  }
  bits.structure -= std::lgamma(static_cast<double>(causes.size()) + 1.0) / std::log(2.0);
  bits.certificate = static_cast<double>(causes.size()) + healings;
  const double apart = -std::log1p(-drop) / noise_;
  const double told = capacity(apart, timeouts_ + stalls_);
  return {bits.structure / told, bits.levels / told, bits.certificate / told};
}

}  // namespace greynic::bench
