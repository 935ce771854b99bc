#pragma once

/// The way of a run's counters while traffic runs: who counts publishes them into an arena of
/// metrics, and the monitor READs them there, as it READs those of any program. Who builds the
/// program brings an arena (CounterArenas); a target without one keeps what was counted as it is.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace greynic::target {

/// Counters by name, as they were at a time of the run.
struct CounterReading {
  std::int64_t time_ns = 0;
  std::vector<std::pair<std::string, double>> counters;
};

class CounterArena {
 public:
  virtual ~CounterArena() = default;
  /// Publishes a reading for whoever looks on.
  virtual void publish(const CounterReading& reading) = 0;
  /// What a one-sided look finds there now; empty before the first reading.
  [[nodiscard]] virtual CounterReading look() = 0;
};

/// Makes one for a measurement, or for a target: `path` names it for others; empty: nobody else
/// sees it.
using CounterArenas = std::function<std::unique_ptr<CounterArena>(const std::string& path)>;

}  // namespace greynic::target
