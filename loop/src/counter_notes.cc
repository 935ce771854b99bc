#include "greynic/loop/counter_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace greynic::loop {
namespace {

constexpr double kRises = 2.0;
constexpr std::size_t kMostNamed = 4;

/// Mean rates of the counters over observations, each from its first sample to its last. A counter
/// that an observation does not have stood still there.
class Rates {
 public:
  void add(const Observation& observation) {
    if (observation.counter_samples.empty()) return;
    ++observations_;
    for (const auto& [name, samples] : observation.counter_samples) {
      if (samples.empty()) continue;
      const auto span = static_cast<double>(samples.back().time_ns - samples.front().time_ns);
      if (span > 0) sums_[name] += (samples.back().value - samples.front().value) / span * 1e9;
    }
  }
  [[nodiscard]] bool empty() const { return observations_ == 0; }
  [[nodiscard]] double of(const std::string& name) const {
    const auto found = sums_.find(name);
    return found == sums_.end() ? 0.0 : found->second / observations_;
  }
  [[nodiscard]] const std::map<std::string, double>& all() const { return sums_; }

 private:
  std::map<std::string, double> sums_;
  double observations_ = 0;
};

struct Risen {
  std::string name;
  double there = 0, usual = 0;
  [[nodiscard]] double times() const { return there / usual; }  // infinite where it stood still
};

std::vector<Risen> risen(const Rates& walls, const Rates& baseline) {
  std::vector<Risen> all;
  for (const auto& [name, sum] : walls.all()) {
    const Risen one{name, walls.of(name), baseline.of(name)};
    if (one.there > 0 && one.there >= kRises * one.usual) all.push_back(one);
  }
  std::stable_sort(all.begin(), all.end(), [](const Risen& a, const Risen& b) {
    return a.times() != b.times() ? a.times() > b.times() : a.there > b.there;
  });
  if (all.size() > kMostNamed) all.resize(kMostNamed);
  return all;
}

}  // namespace

std::vector<std::string> counter_notes(const causal::Explanation& explanation,
                                       std::span<const Observation> observations) {
  Rates baseline;
  std::map<std::string, std::size_t> cause_of;
  std::vector<Rates> walls(explanation.causes.size());
  for (const causal::Wall& wall : explanation.walls) {
    if (wall.cause) cause_of[wall.configuration.name()] = *wall.cause;
  }
  for (const Observation& one : observations) {
    if (one.asked == explanation.baseline) baseline.add(one);
    const auto wall = cause_of.find(one.asked.name());
    if (wall != cause_of.end()) walls[wall->second].add(one);
  }
  std::vector<std::string> notes;
  if (baseline.empty()) return notes;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    std::vector<std::string> names;
    for (const Risen& one : risen(walls[i], baseline)) {
      names.push_back(
          fmt::format("{} ({:.3g}/s, baseline {:.3g}/s)", one.name, one.there, one.usual));
    }
    if (names.empty()) continue;
    notes.push_back(fmt::format("counters that rise at the walls of {} {}: {}",
                                explanation.causes[i].by_experiment ? "cause" : "hypothesis", i + 1,
                                fmt::join(names, ", ")));
  }
  return notes;
}

}  // namespace greynic::loop
