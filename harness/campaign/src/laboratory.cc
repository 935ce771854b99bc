#include "greynic/campaign/laboratory.h"

#include <algorithm>

namespace greynic::campaign {

Result<Laboratory> Laboratory::create(target::Target& device, results::RunStore& store,
                                      RunOptions options) {
  auto keys = store.keys();
  if (!keys) return pass_on(keys);
  Laboratory laboratory(device, store, std::move(options));
  for (const auto& [configuration, repeat] : *keys) {
    int& repeats = laboratory.repeats_[configuration];
    repeats = std::max(repeats, repeat + 1);
  }
  return laboratory;
}

Result<std::vector<Observation>> Laboratory::measure(const Configuration& configuration,
                                                     int count) {
  int& repeats = repeats_[configuration.name()];
  std::vector<Observation> observations;
  RunOptions options = options_;
  options.repeats = repeats + count;
  options.progress = [&](const Progress& progress) {
    if (progress.latest != nullptr) observations.push_back(*progress.latest);
  };
  auto summary = run(*device_, {&configuration, 1}, *store_, options);
  if (!summary) return pass_on(summary);
  if (!summary->complete) {
    return fail(ErrorCode::kInterrupted, "stopped; what was measured is stored with the run");
  }
  repeats += count;
  return observations;
}

}  // namespace greynic::campaign
