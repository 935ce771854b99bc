#pragma once

/// Rates of a device's hw_counters while an observation runs. Readings before and after say how
/// much a counter moved; those in between say whether it moved all the time, and when.
///
/// A helper's thread asks the kernel and publishes what it says into an arena, where it is READ as the
/// metrics of any program are: the samples of a run are what a monitor that looks on sees.

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/target/counter_arena.h"

namespace greynic::verbs {

class CounterWatch {
 public:
  /// Reads five times between a tenth of `duration`, which is warm-up, and its end. A reading takes
  /// some tens of microseconds of another thread.
  /// With `every` other than 0 it reads so often instead, from the begin on.
  CounterWatch(std::string device, int port, std::chrono::nanoseconds duration,
               std::chrono::nanoseconds every = {}, target::CounterArena* arena = nullptr);
  CounterWatch(const CounterWatch&) = delete;
  CounterWatch& operator=(const CounterWatch&) = delete;
  ~CounterWatch();

  /// Ends the watch. Of each neutral counter that moved, "rdma.packets_sent_per_second": the mean
  /// over the intervals between two readings, and its standard error. Empty after a run that ended
  /// before the second reading.
  [[nodiscard]] std::map<std::string, Measure> rates();
  /// All readings, where they were asked for, of the counters that moved.
  [[nodiscard]] std::map<std::string, std::vector<CounterSample>> samples();

 private:
  using Clock = std::chrono::steady_clock;
  struct Reading {
    Clock::time_point when;
    std::map<std::string, double> counters;
  };
  void watch();
  [[nodiscard]] Reading read();
  [[nodiscard]] Clock::time_point due(int reading) const;
  void end();

  std::string device_;
  int port_;
  target::CounterArena* arena_;  ///< null: readings are kept as they are
  Clock::time_point begin_ = Clock::now();
  std::chrono::nanoseconds duration_, every_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::vector<Reading> readings_;
  std::thread thread_;
};

}  // namespace greynic::verbs
