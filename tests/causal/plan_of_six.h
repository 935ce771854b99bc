#pragma once

/// Factors of two levels, and what a walk of a plan asked of them.

#include <algorithm>
#include <string>
#include <vector>

#include "device_of_ten.h"

namespace greynic::causal {

/// Factors of levels a and b, all a in the baseline.
inline Campaign campaign_of(int factors) {
  Campaign campaign;
  campaign.wall = {"bandwidth_gbps", 0.2, {}, {}, {}};
  for (int i = 0; i < factors; ++i) {
    Factor factor{.name = "c" + std::to_string(i), .type = FactorType::kCategorical};
    factor.levels = {std::string("a"), std::string("b")};
    campaign.baseline.set(factor.name, factor.levels.front());
    campaign.factors.push_back(std::move(factor));
  }
  return campaign;
}

inline Campaign campaign_of_six() { return campaign_of(6); }

inline Configuration with(const Campaign& campaign, const std::vector<int>& set) {
  Configuration configuration = campaign.baseline;
  for (const int i : set) configuration.set("c" + std::to_string(i), std::string("b"));
  return configuration;
}

inline Observation observed(const Configuration& configuration, double rate) {
  Observation observation;
  observation.asked = configuration;
  observation.outcome = Outcome::kMeasured;
  observation.measures["bandwidth_gbps"] = {rate, {}};
  return observation;
}

inline int count(const Explanation& explanation, const std::string& why) {
  return static_cast<int>(
      std::count_if(explanation.trail.begin(), explanation.trail.end(),
                    [&](const TrailTest& test) { return test.why.starts_with(why); }));
}

}  // namespace greynic::causal
