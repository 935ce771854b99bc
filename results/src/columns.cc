#include "greynic/results/columns.h"

#include <map>

namespace greynic::results {

Columns columns_of(std::span<const Observation> observations) {
  struct Seen {
    std::set<FactorValue> levels;
    std::size_t times = 0;
  };
  std::map<std::string, Seen> factors;
  std::set<std::string> measures;
  for (const Observation& observation : observations) {
    for (const auto& [factor, level] : observation.asked.levels()) {
      factors[factor].levels.insert(level);
      ++factors[factor].times;
    }
    for (const auto& [name, measure] : observation.measures) measures.insert(name);
  }
  Columns columns;
  for (const auto& [factor, seen] : factors) {
    columns.factors.push_back(factor);
    if (seen.levels.size() > 1 || seen.times < observations.size())
      columns.varied.push_back(factor);
  }
  columns.measures.assign(measures.begin(), measures.end());
  return columns;
}

std::vector<Group> group_by_configuration(std::span<const Observation> observations) {
  std::vector<Group> groups;
  std::map<Configuration, std::size_t> position;
  for (const Observation& observation : observations) {
    const auto [found, added] = position.emplace(observation.asked, groups.size());
    if (added) groups.push_back({.configuration = &observation.asked, .repeats = {}});
    groups[found->second].repeats.push_back(&observation);
  }
  return groups;
}

std::vector<double> values_of(const Group& group, std::string_view measure) {
  std::vector<double> values;
  for (const Observation* observation : group.repeats) {
    if (const auto value = observation->value(measure)) values.push_back(*value);
  }
  return values;
}

std::string name_by(const Configuration& configuration, const std::vector<std::string>& factors) {
  std::string name;
  for (const std::string& factor : factors) {
    if (const FactorValue* level = configuration.find(factor)) {
      name += (name.empty() ? "" : ", ") + factor + "=" + to_string(*level);
    }
  }
  return name;
}

}  // namespace greynic::results
