#include <benchmark/benchmark.h>

#include <random>

#include "greynic/testgen/cover.h"

namespace greynic::testgen {
namespace {

Space uniform(std::size_t parameters, std::uint16_t levels) {
  Space space;
  space.parameters.resize(parameters);
  for (Parameter& p : space.parameters) p.level_count = levels;
  return space;
}

/// Like the synthetic models of the literature: mostly two levels, some up to six, forbidden
/// tuples.
Space mixed(std::size_t parameters, std::size_t forbidden, unsigned seed) {
  std::mt19937 rng(seed);
  Space space;
  for (std::size_t p = 0; p < parameters; ++p) {
    space.parameters.emplace_back().level_count =
        static_cast<std::uint16_t>(rng() % 4 != 0 ? 2 : 3 + rng() % 4);
  }
  for (std::size_t f = 0; f < forbidden; ++f) {
    Clause clause;
    for (unsigned i = 0; i < 2 + rng() % 3; ++i) {
      const auto p = static_cast<std::uint32_t>(rng() % parameters);
      clause.push_back(
          {p, static_cast<std::uint16_t>(rng() % space.parameters[p].level_count), false});
    }
    space.clauses.push_back(clause);
  }
  return space;
}

Space chain(std::size_t parameters) {
  Space space = uniform(parameters, 4);
  for (std::uint32_t p = 0; p + 1 < parameters; ++p) {
    for (std::uint16_t l = 0; l < 4; ++l) {
      space.clauses.push_back(
          {{p, l, false}, {p + 1, static_cast<std::uint16_t>((l + 1) % 4), false}});
    }
  }
  return space;
}

void run(benchmark::State& state, const Space& space, int strength, int threads) {
  CoverOptions options;
  options.strength = strength;
  options.threads = threads;
  for (auto _ : state) {
    const auto made = cover(space, options);
    if (!made) {
      state.SkipWithError(made.error().message.c_str());
      return;
    }
    state.counters["rows"] = static_cast<double>(made->rows.size());
    state.counters["lower_bound"] = static_cast<double>(made->lower_bound);
  }
}

BENCHMARK_CAPTURE(run, free_bits / count = 192, uniform(192, 2), 2, 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, uniform / levels = 3 / count = 13, uniform(13, 3), 2, 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, chain / count = 64, chain(64), 2, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, mixed / strength = 2, mixed(100, 30, 1), 2, 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, mixed / strength = 3, mixed(100, 30, 1), 3, 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, mixed / strength = 3 / threads = 2, mixed(100, 30, 1), 3, 2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(run, mixed / strength = 4, mixed(30, 10, 1), 4, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace greynic::testgen

BENCHMARK_MAIN();
