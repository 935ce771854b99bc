#pragma once

/// The laboratory, with what it answered before: an explanation that is asked for again walks the
/// same way, and is answered from the run.

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

}  // namespace greynic::causal
