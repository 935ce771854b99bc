/// The engine on planted walls: how many it names exactly, in how many tests, and whether it is as
/// sure as it says.
///
///     causal_bench [BLOCK] [CASES] [FAMILY] [BATCH]    all families when none is named
///     TRAIL=1 causal_bench =SEED 1 FAMILY              every test of one case
///     WHERE=1                                          tests of each case by purpose, and S in parts
///     CONFIDENCE=0.95, MOST_TESTS=800, NO_LOG=1        asked for; allowed; without stored runs
///     HIDDEN=1                                         causes that the wall heals are asked for, too

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>

#include "greynic/testgen/compiled_campaign.h"
#include "greynic/testgen/plan.h"
#include "planted.h"
#include "wilson.h"

namespace greynic::bench {
namespace {

constexpr double kMuchLeft = 0.1;  // of what the wall may hide, as the text of an answer says

struct Tally {
  int cases = 0;
  int exact = 0;
  int structure = 0;
  int falsely_complete = 0;  ///< wrong, and called complete
  int said_so = 0;           ///< of these, with much that was not asked
  int sure = 0;              ///< statements at 95 % and more
  int sure_right = 0;
  double told = 0.0;  ///< confidence of all statements,
  int statements = 0;
  int right = 0;  ///< and how many of them are
  std::vector<double> ratios;
  std::vector<double> tests;
  std::vector<double> rounds;
  double slowest_ms = 0.0;  ///< of CPU for a decision, on average of the slowest case
};

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
  causal::Laboratory laboratory = planted.laboratory();
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
  if (!family.planned) options.witness = planted.witness;
  laboratory.plan = [&]() -> Result<std::vector<Configuration>> {
    auto plan = testgen::make_plan(planted.campaign, {});
    if (!plan) return tl::unexpected(plan.error());
    return std::move(plan->configurations);
  };
  options.batch = batch;
  if (const char* asked = std::getenv("CONFIDENCE"))
    options.confidence = std::strtod(asked, nullptr);
  if (const char* most = std::getenv("MOST_TESTS"))
    options.most_tests = std::strtoull(most, nullptr, 10);
  options.hidden = std::getenv("HIDDEN") != nullptr;
  if (std::getenv("NO_LOG") != nullptr) planted.log.clear();
  const std::clock_t begin = std::clock();
  const auto explanation = causal::explain(planted.campaign, planted.log, options, &laboratory);
  const double ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  ++tally.cases;
  if (!explanation) {
    fmt::print("seed {}: {}\n", seed, explanation.error().message);
    return;
  }
  const bool exact = family.false_alarm ? explanation->finding == causal::Finding::kFalseAlarm
                                        : planted.exact(*explanation);
  tally.exact += exact ? 1 : 0;
  const bool false_list = !exact && explanation->complete;
  tally.falsely_complete += false_list ? 1 : 0;
  // Of causes that the wall heals, an answer says how much it excludes.
  tally.said_so += false_list && explanation->hidden_left.value_or(0.0) >= kMuchLeft ? 1 : 0;
  tally.structure += planted.structure(*explanation) ? 1 : 0;
  for (const causal::Cause& cause : explanation->causes) {
    const bool right = planted.right(cause);
    ++tally.statements;
    tally.told += cause.confidence;
    tally.right += right ? 1 : 0;
    if (cause.confidence < 0.95) continue;
    ++tally.sure;
    tally.sure_right += right ? 1 : 0;
  }
  tally.tests.push_back(planted.tests);
  tally.rounds.push_back(static_cast<double>(explanation->rounds));
  if (!family.false_alarm) tally.ratios.push_back(planted.tests / planted.bound().all());
  tally.slowest_ms = std::max(tally.slowest_ms, ms / std::max(1, planted.tests));
  if (std::getenv("WHERE") != nullptr) {
    std::map<std::string, int> by;
    for (const causal::TrailTest& test : explanation->trail) ++by[test.why.substr(0, 18)];
    const auto bound = planted.bound();
    fmt::print(
        "seed {} {} {} tests, {} rounds, S {:.1f} = structure {:.1f} + levels {:.1f} + "
        "certificate {:.1f}:",
        seed, exact ? "ok " : "BAD", planted.tests, explanation->rounds, bound.all(),
        bound.structure, bound.levels, bound.certificate);
    for (const auto& [why, n] : by) fmt::print(" [{} {}]", why, n);
    std::map<std::string, std::set<std::size_t>> rounds;
    for (const causal::TrailTest& test : explanation->trail)
      rounds[test.why.substr(0, 18)].insert(test.round);
    for (const auto& [why, n] : rounds) fmt::print(" ({} {})", why, n.size());
    fmt::print("\n");
  }
  const bool trail = std::getenv("TRAIL") != nullptr;
  if (talk && (trail || !exact)) {
    fmt::print("seed {}: {} factors, {} tests, bound {:.0f}, {}\n{}", seed,
               planted.campaign.factors.size(), planted.tests, planted.bound().all(),
               explanation->complete ? "complete" : "incomplete", planted.truth());
    for (const causal::Cause& cause : explanation->causes) {
      fmt::print("  told{}: {} ({:.4f})\n", cause.emergent ? " emergent" : "", cause.text(),
                 cause.confidence);
    }
    for (const std::string& note : explanation->notes)
      fmt::print("  note: {}\n", note.substr(note.size() > 200 ? note.size() - 200 : 0));
    if (trail) {
      for (const causal::TrailTest& test : explanation->trail) {
        fmt::print("    {:<40} value {:7.2f} wall {} {:.3f} -> {:.3f}\n", test.why,
                   test.value.value_or(0.0), planted.is_wall(test.configuration), test.before,
                   test.after);
      }
    }
  }
}

int main_of(int count, char** words) {
  const std::string block = count > 1 ? words[1] : "1";
  const bool one = block.starts_with("=");  // the seed of a case, as printed
  const std::uint64_t number = std::strtoull(block.c_str() + (one ? 1 : 0), nullptr, 10);
  const std::uint64_t seed = one ? number : number * 1'000'003;
  const int cases = count > 2 ? std::atoi(words[2]) : 40;
  const std::string wanted = count > 3 ? words[3] : "";
  const int batch = count > 4 ? std::atoi(words[4]) : 1;
  fmt::print(
      "{:<12} {:>5}  {:>5} {:<15} {:>9}  {:>5} {:>5} {:>6} {:>6}  {:>9} {:>6}  {:>5} {:>5} {:>5} "
      "{:>7}\n",
      "family", "cases", "exact", "  95 %", "structure", "x S", "p90", "tests", "rounds", "sure",
      "ms", "told", "right", "false", "said so");
  for (const Family& family : families()) {
    if (!wanted.empty() && wanted != "all" && wanted != family.name) continue;
    Tally tally;
    for (int i = 0; i < cases; ++i) {
      run_case(family, seed + static_cast<std::uint64_t>(i), batch, !wanted.empty(), tally);
    }
    const auto [low, high] = wilson(tally.exact, tally.cases);
    fmt::print(
        "{:<12} {:>5}  {:>5.3f} [{:.3f}, {:.3f}] {:>9.3f}  {:>5.2f} {:>5.2f} {:>6.1f} {:>6.1f}  "
        "{:>4}/{:<4} {:>6.2f}  {:>5.3f} {:>5.3f} {:>5} {:>7}\n",
        family.name, tally.cases, static_cast<double>(tally.exact) / tally.cases, low, high,
        static_cast<double>(tally.structure) / tally.cases, mean(tally.ratios),
        decile(tally.ratios), mean(tally.tests), mean(tally.rounds), tally.sure_right, tally.sure,
        tally.slowest_ms, tally.told / std::max(1, tally.statements),
        static_cast<double>(tally.right) / std::max(1, tally.statements), tally.falsely_complete,
        tally.said_so);
    std::fflush(stdout);
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  fmt::print("most memory: {} MiB\n", used.ru_maxrss / 1024);
  return 0;
}

}  // namespace
}  // namespace greynic::bench

int main(int count, char** words) { return greynic::bench::main_of(count, words); }
