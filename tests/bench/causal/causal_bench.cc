/// The engine on planted walls: how many it names exactly, in how many tests, and whether it is as
/// sure as it says.
///
///     causal_bench [SEED] [CASES] [FAMILY] [BATCH]     all families when none is named

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "greynic/testgen/compiled_campaign.h"
#include "planted.h"

namespace greynic::bench {
namespace {

std::vector<Family> families() {
  std::vector<Family> all;
  all.push_back({.name = "clean"});
  all.push_back(
      {.name = "levels", .most_factors = 96, .most_order = 3, .numbers = true, .intervals = 0.35});
  all.push_back({.name = "masked",
                 .most_factors = 96,
                 .most_order = 3,
                 .least_causes = 2,
                 .most_causes = 3,
                 .numbers = true,
                 .intervals = 0.35,
                 .overlap = true});
  all.push_back({.name = "noise",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.35,
                 .noise = {0.15, 0.30},
                 .least_drop = 0.25,
                 .most_stalls = 0.05,
                 .most_timeouts = 0.05});
  all.push_back({.name = "three",
                 .least_factors = 96,
                 .most_factors = 96,
                 .least_order = 3,
                 .most_order = 3,
                 .least_causes = 3,
                 .most_causes = 3,
                 .noise = {0.30},
                 .least_drop = 0.3});
  all.push_back({.name = "emergent",
                 .most_factors = 96,
                 .least_order = 2,
                 .most_order = 3,
                 .emergent = true});
  all.push_back({.name = "weak",
                 .most_factors = 96,
                 .most_order = 3,
                 .noise = {0.15},
                 .least_drop = 0.12,
                 .most_drop = 0.2});
  all.push_back({.name = "constraints",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.2,
                 .most_forbidden = 40});
  all.push_back({.name = "false_alarm", .most_factors = 96, .noise = {0.03}, .false_alarm = true});
  all.push_back({.name = "sums",
                 .most_factors = 96,
                 .least_order = 1,
                 .most_order = 2,
                 .numbers = true,
                 .sum = true});
  all.push_back({.name = "drift", .most_factors = 96, .most_order = 3, .drift = 0.1});
  all.push_back({.name = "sticky", .most_factors = 96, .most_order = 3, .sticky = 3});
  all.push_back({.name = "absolute",
                 .most_factors = 96,
                 .most_order = 3,
                 .numbers = true,
                 .intervals = 0.35,
                 .absolute = true});
  return all;
}

struct Tally {
  int cases = 0;
  int exact = 0;
  int structure = 0;
  int sure = 0;  ///< statements at 95 % and more
  int sure_right = 0;
  std::vector<double> ratios;
  std::vector<double> tests;
  std::vector<double> rounds;
  double slowest_ms = 0.0;  ///< a decision, on average of the slowest case
};

/// Wilson's 95 % interval of a share.
std::pair<double, double> wilson(int hits, int cases) {
  const double n = cases, p = hits / n, z = 1.96;
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {middle - half, middle + half};
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

double decile(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  return values[values.size() * 9 / 10];
}

void run_case(const Family& family, std::uint64_t seed, int batch, bool talk, Tally& tally) {
  PlantedCase planted(family, seed);
  causal::Laboratory laboratory;
  laboratory.measure = [&](std::span<const Configuration> wanted) {
    std::vector<Observation> made;
    for (const Configuration& one : wanted) made.push_back(planted.measure(one));
    return Result<std::vector<Observation>>(std::move(made));
  };
  std::optional<testgen::CompiledCampaign> compiled;
  if (!planted.campaign.forbidden.empty()) {
    compiled = testgen::CompiledCampaign::create(planted.campaign).value();
    laboratory.complete = [&](const Configuration& levels) -> std::optional<Configuration> {
      auto whole = compiled->complete(levels, "a test");
      return whole ? std::optional(std::move(*whole)) : std::nullopt;
    };
    laboratory.allows = [&](const Configuration& whole) { return planted.allowed(whole); };
  }
  causal::ExplainOptions options;
  options.witness = planted.witness;
  options.batch = batch;
  const auto begin = std::chrono::steady_clock::now();
  const auto explanation = causal::explain(planted.campaign, {}, options, &laboratory);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  ++tally.cases;
  if (!explanation) {
    fmt::print("seed {}: {}\n", seed, explanation.error().message);
    return;
  }
  const bool exact = family.false_alarm ? explanation->finding == causal::Finding::kFalseAlarm
                                        : planted.exact(*explanation);
  tally.exact += exact ? 1 : 0;
  tally.structure += planted.structure(*explanation) ? 1 : 0;
  for (const causal::Cause& cause : explanation->causes) {
    if (cause.confidence < 0.95) continue;
    ++tally.sure;
    tally.sure_right += planted.right(cause) ? 1 : 0;
  }
  tally.tests.push_back(planted.tests);
  tally.rounds.push_back(static_cast<double>(explanation->rounds));
  if (!family.false_alarm) tally.ratios.push_back(planted.tests / planted.bound());
  tally.slowest_ms = std::max(tally.slowest_ms, ms / std::max(1, planted.tests));
  if (talk && !exact) {
    fmt::print("seed {}: {} factors, {} tests, bound {:.0f}, {}\n{}", seed,
               planted.campaign.factors.size(), planted.tests, planted.bound(),
               explanation->complete ? "complete" : "incomplete", planted.truth());
    for (const causal::Cause& cause : explanation->causes) {
      fmt::print("  told{}: {} ({:.4f})\n", cause.emergent ? " emergent" : "", cause.text(),
                 cause.confidence);
    }
    for (const std::string& note : explanation->notes)
      fmt::print("  note: {}\n", note.substr(note.size() > 200 ? note.size() - 200 : 0));
    if (std::getenv("TRAIL") != nullptr) {
      for (const causal::TrailTest& test : explanation->trail) {
        fmt::print("    {:<40} value {:7.2f} wall {} {:.3f} -> {:.3f}\n", test.why,
                   test.value.value_or(0.0), planted.is_wall(test.configuration), test.before,
                   test.after);
      }
    }
  }
}

int main_of(int count, char** words) {
  const std::uint64_t seed = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1;
  const int cases = count > 2 ? std::atoi(words[2]) : 40;
  const std::string wanted = count > 3 ? words[3] : "";
  const int batch = count > 4 ? std::atoi(words[4]) : 1;
  fmt::print("{:<12} {:>5}  {:>5} {:<15} {:>9}  {:>5} {:>5} {:>6} {:>6}  {:>9} {:>6}\n", "family",
             "cases", "exact", "  95 %", "structure", "x S", "p90", "tests", "rounds", "sure",
             "ms");
  for (const Family& family : families()) {
    if (!wanted.empty() && wanted != "all" && wanted != family.name) continue;
    Tally tally;
    for (int i = 0; i < cases; ++i) {
      run_case(family, seed * 1'000'003 + static_cast<std::uint64_t>(i), batch, !wanted.empty(),
               tally);
    }
    const auto [low, high] = wilson(tally.exact, tally.cases);
    fmt::print(
        "{:<12} {:>5}  {:>5.3f} [{:.3f}, {:.3f}] {:>9.3f}  {:>5.2f} {:>5.2f} {:>6.1f} {:>6.1f}  "
        "{:>4}/{:<4} {:>6.2f}\n",
        family.name, tally.cases, static_cast<double>(tally.exact) / tally.cases, low, high,
        static_cast<double>(tally.structure) / tally.cases, mean(tally.ratios),
        decile(tally.ratios), mean(tally.tests), mean(tally.rounds), tally.sure_right, tally.sure,
        tally.slowest_ms);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace greynic::bench

int main(int count, char** words) { return greynic::bench::main_of(count, words); }
