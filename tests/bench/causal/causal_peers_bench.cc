/// The engine beside what others do, on the same planted walls: how often each names the settings of
/// all causes, and nothing else, and in how many tests.
///
///     causal_peers_bench [BLOCK] [CASES] [FAMILY]    clean, levels, masked and noise when none is named

#include <fmt/core.h>

#include <cstdlib>

#include "peers.h"
#include "planted.h"
#include "wilson.h"

namespace greynic::bench {
namespace {

struct Score {
  int cases = 0;
  int right = 0;
  double tests = 0.0;
  double tests_right = 0.0;         ///< of the cases that it solves,
  double engine_tests_there = 0.0;  ///< and the engine's on the very same
};

/// The settings of a case's causes, by factor.
bool is_truth(const PlantedCase& planted, const Blamed& blamed) {
  if (planted.causes.size() != 1) return false;  // they name one
  Blamed truth;
  for (const PlantedTerm& term : planted.causes.front().terms) truth.insert(term.factor);
  return truth == blamed;
}

Blamed ask(const Peer& peer, PlantedCase& planted) {
  const Campaign& campaign = planted.campaign;
  const double good = *planted.measure(campaign.baseline).value(campaign.wall.metric);
  const auto fails = [&](const Blamed& kept) {
    Configuration configuration = campaign.baseline;
    for (const std::size_t i : kept) {
      const std::string& name = campaign.factors[i].name;
      configuration.set(name, *planted.witness.find(name));
    }
    const auto value = planted.measure(configuration).value(campaign.wall.metric);
    return !value || *value < good * (1.0 - *campaign.wall.below_baseline_by);
  };
  return peer.blame(campaign.factors.size(), fails);
}

void print(const std::string& family, const std::string& name, const Score& score) {
  const auto [low, high] = wilson(score.right, score.cases);
  fmt::print("{:<8} {:<17} {:>5.3f} [{:.3f}, {:.3f}] {:>8.1f} {:>12.1f} {:>18.1f}\n", family, name,
             static_cast<double>(score.right) / score.cases, low, high, score.tests / score.cases,
             score.tests_right / std::max(1, score.right),
             score.engine_tests_there / std::max(1, score.right));
}

void compare(const Family& family, std::uint64_t seed, int cases) {
  const std::vector<Peer> all = peers();
  std::vector<Score> scores(all.size());
  Score engine;
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t one = seed + static_cast<std::uint64_t>(i);
    PlantedCase planted(family, one);
    const causal::Laboratory laboratory = planted.laboratory();
    causal::ExplainOptions options;
    options.witness = planted.witness;
    const auto explanation = causal::explain(planted.campaign, {}, options, &laboratory);
    const double tests = planted.tests;
    const bool right = explanation && planted.structure(*explanation);
    engine.cases += 1;
    engine.right += right ? 1 : 0;
    engine.tests += tests;
    engine.tests_right += right ? tests : 0.0;
    engine.engine_tests_there += right ? tests : 0.0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      PlantedCase again(family, one);  // the same device and the same noise
      const bool solved = is_truth(again, ask(all[k], again));
      scores[k].cases += 1;
      scores[k].right += solved ? 1 : 0;
      scores[k].tests += again.tests;
      scores[k].tests_right += solved ? again.tests : 0.0;
      scores[k].engine_tests_there += solved ? tests : 0.0;
    }
  }
  print(family.name, "greynic", engine);
  for (std::size_t k = 0; k < all.size(); ++k) print(family.name, all[k].name, scores[k]);
  std::fflush(stdout);
}

int main_of(int count, char** words) {
  const std::uint64_t block = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1;
  const int cases = count > 2 ? std::atoi(words[2]) : 40;
  const std::string wanted = count > 3 ? words[3] : "";
  fmt::print("{:<8} {:<17} {:>5} {:<14} {:>8} {:>12} {:>18}\n", "family", "method", "right",
             "  95 %", "tests", "where right", "greynic's there");
  for (const Family& family : families()) {
    const std::string& name = family.name;
    const bool usual = name == "clean" || name == "levels" || name == "masked" || name == "noise";
    if (wanted.empty() ? usual : wanted == name) {
      compare(family, block * 1'000'003, cases);
    }
  }
  return 0;
}

}  // namespace
}  // namespace greynic::bench

int main(int count, char** words) { return greynic::bench::main_of(count, words); }
