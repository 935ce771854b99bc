#pragma once

/// A campaign of ten factors, and a device in which walls are planted.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "greynic/causal/explain.h"

namespace greynic::causal {

constexpr int kFactors = 10;

/// Five numeric factors (levels 0 10 20 40 80, baseline 0) and five of two categories (baseline
/// "a").
inline Campaign campaign_of_ten() {
  Campaign campaign;
  campaign.name = "planted";
  for (int i = 0; i < kFactors; ++i) {
    Factor factor;
    factor.name = std::string(i < 5 ? "n" : "c") + std::to_string(i);
    if (i < 5) {
      for (const double level : {0.0, 10.0, 20.0, 40.0, 80.0}) factor.levels.emplace_back(level);
    } else {
      factor.type = FactorType::kCategorical;
      factor.levels = {std::string("a"), std::string("b")};
    }
    campaign.baseline.set(factor.name, factor.levels.front());
    campaign.factors.push_back(std::move(factor));
  }
  campaign.wall = {"bandwidth_gbps", 0.2, {}, {}, {}};
  return campaign;
}

inline bool is_set(const Configuration& configuration, const std::string& factor) {
  return configuration.text(factor) == "b";
}

/// A device with planted walls: a conjunction of thresholds and levels drops bandwidth by a share.
struct PlantedDevice {
  std::map<std::string, FactorValue> all_of;  ///< numeric: at least; category: equal
  double drop = 0.4;
  double noise = 0.02;
  std::mt19937_64 random;
  int tests = 0;

  bool is_hit(const Configuration& configuration) const {
    for (const auto& [name, level] : all_of) {
      const FactorValue* value = configuration.find(name);
      if (const double* bound = std::get_if<double>(&level)) {
        if (std::get<double>(*value) < *bound) return false;
      } else if (*value != level) {
        return false;
      }
    }
    return !all_of.empty();
  }
  Observation measure(const Configuration& configuration) {
    ++tests;
    std::normal_distribution<double> draw(0.0, noise);
    Observation observation;
    observation.asked = configuration;
    observation.outcome = Outcome::kMeasured;
    const double truth = is_hit(configuration) ? 100.0 * (1.0 - drop) : 100.0;
    observation.measures["bandwidth_gbps"] = {truth * std::exp(draw(random)), {}};
    return observation;
  }
};

inline Configuration random_configuration(const Campaign& campaign, std::mt19937_64& random) {
  Configuration configuration;
  for (const Factor& factor : campaign.factors) {
    configuration.set(factor.name, factor.levels[random() % factor.levels.size()]);
  }
  return configuration;
}

using Measure = std::function<Observation(const Configuration&)>;

/// The baseline and random configurations, three repeats each.
inline std::vector<Observation> run_of(const Campaign& campaign, const Measure& measure,
                                       std::mt19937_64& random, int configurations = 60) {
  std::vector<Configuration> plan = {campaign.baseline};
  while (std::ssize(plan) < configurations) plan.push_back(random_configuration(campaign, random));
  std::vector<Observation> run;
  for (const Configuration& configuration : plan) {
    for (int repeat = 0; repeat < 3; ++repeat) run.push_back(measure(configuration));
  }
  return run;
}

inline Laboratory laboratory_of(Measure measure) {
  Laboratory laboratory;
  laboratory.measure = [measure = std::move(measure)](std::span<const Configuration> wanted) {
    std::vector<Observation> observations;
    for (const Configuration& one : wanted) observations.push_back(measure(one));
    return Result<std::vector<Observation>>(std::move(observations));
  };
  return laboratory;
}

inline Measure measuring(PlantedDevice& device) {
  return [&device](const Configuration& configuration) { return device.measure(configuration); };
}

inline PlantedDevice planted(const Campaign& campaign, int terms, std::uint64_t seed) {
  PlantedDevice device;
  device.random.seed(seed);
  while (static_cast<int>(device.all_of.size()) < terms) {
    const auto i = device.random() % kFactors;
    const double threshold = 3.0 + static_cast<double>(device.random() % 35);
    const FactorValue level = i < 5 ? FactorValue(threshold) : FactorValue(std::string("b"));
    device.all_of.emplace(campaign.factors[i].name, level);
  }
  return device;
}

}  // namespace greynic::causal
