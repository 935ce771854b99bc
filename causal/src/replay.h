#pragma once

/// The laboratory, with what it answered before: an explanation that is asked for again walks the
/// same way, and is answered from the run.

#include <fmt/core.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "greynic/causal/explain.h"

namespace greynic::causal {

class Replay {
 public:
  Replay(const Laboratory& laboratory, const ExplainOptions& options)
      : laboratory_(laboratory), options_(options) {}

  void hold(const Observation& observation) {
    held_[observation.asked.name()].push_back(observation);
  }
  [[nodiscard]] std::size_t ordered() const { return ordered_; }
  /// kAllowanceSpent where it would order more tests than the options allow.
  [[nodiscard]] Result<std::vector<Observation>> measure(std::span<const Configuration> wanted);

 private:
  const Laboratory& laboratory_;
  const ExplainOptions& options_;
  std::map<std::string, std::vector<Observation>> held_;
  std::size_t ordered_ = 0;
};

inline Result<std::vector<Observation>> Replay::measure(std::span<const Configuration> wanted) {
  std::vector<Observation> all;
  std::vector<Configuration> fresh;
  for (const Configuration& configuration : wanted) {
    auto held = held_.find(configuration.name());
    if (held != held_.end() && !held->second.empty()) {
      all.push_back(held->second.front());
      held->second.erase(held->second.begin());
    } else {
      fresh.push_back(configuration);
    }
  }
  if (fresh.empty()) return all;
  if (ordered_ + fresh.size() > options_.most_tests) {
    return fail(ErrorCode::kAllowanceSpent,
                fmt::format("the allowance of {} tests is spent; raise it with --most-tests",
                            options_.most_tests));
  }
  auto made = laboratory_.measure(fresh);
  if (!made) return pass_on(made);
  ordered_ += made->size();
  all.insert(all.end(), made->begin(), made->end());
  return all;
}

}  // namespace greynic::causal
