// What recording one latency costs, on values as a run sees them. Ceiling: 20 ns a sample.

#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "greynic/core/histogram.h"

namespace {

/// Log-normal around 5 us, which touches some hundred buckets.
std::vector<std::uint64_t> latencies() {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> shape(std::log(5000.0), 0.7);
  std::vector<std::uint64_t> values(1 << 16);
  for (auto& value : values) value = static_cast<std::uint64_t>(shape(random));
  return values;
}

void record(benchmark::State& state) {
  const auto values = latencies();
  greynic::LatencyHistogram histogram;
  std::size_t i = 0;
  for (auto _ : state) {
    histogram.record(values[i]);
    i = (i + 1) & (values.size() - 1);
  }
  benchmark::DoNotOptimize(histogram.count());
}
BENCHMARK(record)->Name("latency_histogram/record");

}  // namespace

BENCHMARK_MAIN();
