#pragma once

/// Further tests on a run. A caller that needs one more answer about a configuration gets its next
/// repeats measured, stored with the run and returned. They are stored, so asking the same again
/// after a stop costs nothing.

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "greynic/campaign/run.h"

namespace greynic::campaign {

class Laboratory {
 public:
  /// All three must outlive it. `options.repeats` is not used; repeats go on where the store ends. `options.progress`
  /// hears each new observation.
  [[nodiscard]] static Result<Laboratory> create(target::Target& device, results::RunStore& store,
                                                 RunOptions options);

  /// `count` new observations of one configuration. kInterrupted when the user stopped it.
  [[nodiscard]] Result<std::vector<Observation>> measure(const Configuration& configuration,
                                                         int count);

  /// One new observation of each, in this order; a target that can measure several at a time does.
  [[nodiscard]] Result<std::vector<Observation>> measure(std::span<const Configuration> wanted);

  /// Measures each until so many repeats of it are stored.
  [[nodiscard]] Result<void> complete(std::span<const Configuration> wanted, int repeats);

  /// Names of the configurations that a laboratory measured first, not the run's plan.
  [[nodiscard]] static Result<std::set<std::string>> ordered(const results::RunStore& store);

 private:
  Laboratory(target::Target& device, results::RunStore& store, RunOptions options)
      : device_(&device), store_(&store), options_(std::move(options)) {}

  [[nodiscard]] Result<void> remember(const Configuration& configuration);

  target::Target* device_;
  results::RunStore* store_;
  RunOptions options_;
  std::set<std::string> ordered_;
  std::map<std::string, int> repeats_;  // stored so far, by configuration
};

}  // namespace greynic::campaign
