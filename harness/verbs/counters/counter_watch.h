#pragma once

/// Rates of a device's hw_counters while an observation runs. Readings before and after say how
/// much a counter moved; those in between say whether it moved all the time, and when.
///
/// A helper's thread asks the kernel and publishes what it says into an arena, where it is READ as the
/// metrics of any program are: the samples of a run are what a monitor that looks on sees. Those of a
/// peer on another host are READ there by a monitor.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/target/counter_arena.h"
#include "greynic/target/far_counters.h"

namespace greynic::verbs {

/// Who says what the neutral counters of a device are.
struct CounterSource {
  /// Now; empty where it cannot be said at the moment.
  std::function<std::map<std::string, double>()> read;
  /// The thread that asks may have a table of files for itself.
  bool own_files = true;
};

/// The kernel of this host.
[[nodiscard]] CounterSource counters_of_device(std::string device, int port);
/// A monitor's view of another host; `far` outlives the source.
[[nodiscard]] CounterSource counters_of_host(target::FarCounters& far);

class CounterWatch {
 public:
  /// Reads five times between a tenth of `duration`, which is warm-up, and its end. A reading of the
  /// kernel takes some tens of microseconds of another thread.
  /// With `every` other than 0 it reads so often instead, from the begin on.
  CounterWatch(CounterSource source, std::chrono::nanoseconds duration,
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

  CounterSource source_;
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
