#include "experiment.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace greynic::causal {
namespace {

constexpr double kGeometricRatio = 4.0;   // wider brackets are halved on a logarithmic scale
constexpr double kThresholdShare = 0.05;  // bisection ends within this share of the threshold
constexpr int kMostBisections = 24;

double halfway(double clear, double wall) {
  const double low = std::min(clear, wall);
  const double high = std::max(clear, wall);
  double middle = (low + high) / 2.0;
  if (low > 0.0 && high / low > kGeometricRatio) middle = std::sqrt(low * high);
  const bool whole = std::nearbyint(low) == low && std::nearbyint(high) == high;
  return whole ? std::nearbyint(middle) : middle;
}

bool close_enough(double clear, double wall) {
  const double gap = std::abs(clear - wall);
  const double larger = std::max(std::abs(clear), std::abs(wall));
  const bool whole = std::nearbyint(clear) == clear && std::nearbyint(wall) == wall;
  return gap <= kThresholdShare * larger || (whole && gap <= 1.0);
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

Experiment::Experiment(const Campaign& campaign, const Configuration& baseline, WallTester& tester,
                       const ExplainOptions& options, const Laboratory& laboratory)
    : campaign_(campaign),
      baseline_(baseline),
      tester_(tester),
      options_(options),
      laboratory_(laboratory) {}

std::optional<Configuration> Experiment::with_levels(const Factors& factors) const {
  Configuration levels;
  for (const std::string& name : factors) levels.set(name, *wall_.find(name));
  return completed(levels);
}

std::optional<Configuration> Experiment::with_levels(const Factors& factors,
                                                     const std::string& factor,
                                                     const FactorValue& level) const {
  Configuration levels;
  for (const std::string& name : factors) levels.set(name, *wall_.find(name));
  levels.set(factor, level);
  return completed(levels);
}

std::optional<Configuration> Experiment::completed(const Configuration& levels) const {
  if (laboratory_.complete) return laboratory_.complete(levels);
  Configuration whole = baseline_;
  for (const auto& [name, level] : levels.levels()) whole.set(name, level);
  return whole;
}

Result<WallTest> Experiment::decide(const Configuration& configuration, double alpha,
                                    const std::string& what) {
  WallTest test = tester_.test(configuration, alpha);
  // Every look spends its share of alpha, so that peeking does not make a decision cheaper.
  const double each = alpha / std::max(1, options_.most_repeats);
  while (!(test.decided && std::min(test.p_wall, test.p_clear) <= each) &&
         test.tests < options_.most_repeats) {
    if (ordered_ >= options_.most_tests) {
      return fail(ErrorCode::kAllowanceSpent,
                  fmt::format("the allowance of {} tests is spent; raise it with --most-tests",
                              options_.most_tests));
    }
    if (laboratory_.progress) laboratory_.progress(ordered_, what);
    const int count = test.tests == 0 ? std::max(2, campaign_.measure.repeats) : 1;
    auto observations = laboratory_.measure(configuration, count);
    if (!observations) return pass_on(observations);
    ordered_ += observations->size();
    for (const Observation& observation : *observations) tester_.add(observation);
    const int before = test.tests;
    test = tester_.test(configuration, each);
    if (!test.testable || test.tests == before) return test;  // refused, or still too short
  }
  return test;
}

Result<bool> Experiment::is_wall(const Factors& factors, const std::string& what) {
  const auto configuration = with_levels(factors);
  // What constraints forbid, or the device refuses, cannot show the wall by itself.
  if (!configuration) return false;
  auto test = decide(*configuration, 1.0 - options_.confidence, what);
  if (!test) return pass_on(test);
  return test->testable && test->wall;
}

Result<Experiment::Factors> Experiment::minimal(const Factors& kept, bool changed,
                                                const Factors& open) {
  if (changed) {
    auto enough = is_wall(kept, "halving the settings");
    if (!enough) return pass_on(enough);
    if (*enough) return Factors{};
  }
  if (open.size() <= 1) return open;
  const auto middle = open.begin() + static_cast<std::ptrdiff_t>(open.size() / 2);
  const Factors first(open.begin(), middle);
  const Factors second(middle, open.end());
  Factors with_first = kept;
  with_first.insert(with_first.end(), first.begin(), first.end());
  auto needed_second = minimal(with_first, true, second);
  if (!needed_second) return needed_second;
  Factors with_second = kept;
  with_second.insert(with_second.end(), needed_second->begin(), needed_second->end());
  auto needed_first = minimal(with_second, !needed_second->empty(), first);
  if (!needed_first) return needed_first;
  needed_first->insert(needed_first->end(), needed_second->begin(), needed_second->end());
  return needed_first;
}

void Experiment::keep_evidence(Cause& cause, const Configuration& configuration,
                               const WallTest& test, std::string role) const {
  Evidence evidence;
  evidence.configuration = configuration;
  evidence.wall = test.wall;
  evidence.decided = test.decided;
  evidence.tests = test.tests;
  evidence.p_value = std::min(1.0, test.wall ? test.p_wall : test.p_clear);
  evidence.ratio = test.ratio;
  evidence.role = std::move(role);
  cause.evidence.push_back(std::move(evidence));
}

Result<void> Experiment::confirm(const Factors& terms, const Configuration& all, Cause& cause) {
  // The answers a cause rests on share its error: one for all terms, one for each removal.
  const double alpha = (1.0 - options_.confidence) / static_cast<double>(terms.size() + 1);
  double error = 0.0;
  auto whole = decide(all, alpha, "confirming the cause");
  if (!whole) return pass_on(whole);
  keep_evidence(cause, all, *whole, "all terms");
  cause.severity = whole->ratio;
  error += whole->wall ? whole->p_wall : 1.0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    Factors others = terms;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto without = with_levels(others);
    if (!without) continue;  // stays unconfirmed
    auto test = decide(*without, alpha, "removing " + terms[i]);
    if (!test) return pass_on(test);
    if (!test->testable) continue;
    keep_evidence(cause, *without, *test, "without " + terms[i]);
    cause.all_of[i].confirmed = test->decided && !test->wall;
    error += test->wall ? 1.0 : test->p_clear;
  }
  cause.confidence = std::clamp(1.0 - error, 0.0, 1.0);
  return {};
}

Result<void> Experiment::bisect(const Factors& terms, Condition& condition, Cause& cause) {
  if (!condition.clear_level || !condition.confirmed) return {};
  double clear = *condition.clear_level;
  double wall = std::get<double>(condition.level);
  for (int step = 0; step < kMostBisections && !close_enough(clear, wall); ++step) {
    const double middle = halfway(clear, wall);
    if (middle == clear || middle == wall) break;
    const auto configuration = with_levels(terms, condition.factor, middle);
    if (!configuration) break;
    auto test = decide(*configuration, 1.0 - options_.confidence, "bisecting " + condition.factor);
    if (!test) return pass_on(test);
    if (!test->testable) break;
    keep_evidence(cause, *configuration, *test, "bisecting " + condition.factor);
    if (!test->decided) break;  // so near to the bound that noise hides the side
    (test->wall ? wall : clear) = middle;
  }
  condition.level = wall;
  condition.clear_level = clear;
  return {};
}

Result<Finding> Experiment::cause_of(const Configuration& wall) {
  wall_ = wall;
  const Factors changed = changed_factors(baseline_, wall);
  if (changed.empty()) return Finding{{}, "the baseline itself is a wall; choose another baseline"};
  auto terms = minimal({}, false, changed);
  if (!terms) return pass_on(terms);
  std::sort(terms->begin(), terms->end());
  Cause cause;
  cause.by_experiment = true;
  for (const std::string& name : *terms) {
    const FactorValue* base = baseline_.find(name);
    const FactorValue& level = *wall_.find(name);
    cause.all_of.push_back(condition_for(name, base != nullptr ? *base : FactorValue(), level));
  }
  const auto all = with_levels(*terms);
  if (!all) return Finding{{}, "constraints forbid the terms without the rest"};
  if (auto done = confirm(*terms, *all, cause); !done) return pass_on(done);
  if (cause.confidence <= 0.0) {
    return Finding{{}, "further tests do not confirm that " + cause.text() + " causes it"};
  }
  for (Condition& condition : cause.all_of) {
    if (auto done = bisect(*terms, condition, cause); !done) {
      // The cause stands without its threshold.
      if (done.error().code == ErrorCode::kAllowanceSpent) break;
      return pass_on(done);
    }
  }
  if (!cause.holds(wall)) {
    return Finding{{}, cause.text() + " brings the wall from the baseline, but not here"};
  }
  return Finding{std::move(cause), {}};
}

Result<void> Experiment::confirm_exception(Cause& cause, const Configuration& wall,
                                           Condition& exception) {
  wall_ = wall;
  Factors terms;
  for (const Condition& condition : cause.all_of) terms.push_back(condition.factor);
  const auto configuration = with_levels(terms, exception.factor, exception.level);
  if (!configuration) return {};
  auto test = decide(*configuration, 1.0 - options_.confidence, "testing an exception");
  if (!test) return pass_on(test);
  if (!test->testable) return {};
  exception.confirmed = test->decided && !test->wall;
  keep_evidence(cause, *configuration, *test, "with " + exception.text());
  return {};
}

}  // namespace greynic::causal
