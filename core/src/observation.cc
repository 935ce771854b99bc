#include "greynic/core/observation.h"

#include <algorithm>
#include <array>

namespace greynic {
namespace {
constexpr std::array<std::string_view, 6> kOutcomes = {"not_run", "measured",  "refused",
                                                       "failed",  "timed_out", "too_short"};
}

std::string_view to_string(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> outcome_named(std::string_view name) {
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    if (kOutcomes[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

std::optional<double> Observation::value(std::string_view measure) const {
  if (outcome != Outcome::kMeasured) return std::nullopt;
  const auto found = measures.find(std::string(measure));
  if (found == measures.end()) return std::nullopt;
  return found->second.value;
}

void keep_what_moved(std::map<std::string, std::vector<CounterSample>>& samples) {
  std::erase_if(samples, [](const auto& counter) {
    const std::vector<CounterSample>& all = counter.second;
    return std::all_of(all.begin(), all.end(), [&](const CounterSample& sample) {
      return sample.value == all.front().value;
    });
  });
}

}  // namespace greynic
