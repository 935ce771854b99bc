#include "lanes.h"

#include <algorithm>

namespace greynic::causal {
namespace {

constexpr std::size_t kMostLevels = 64;

}  // namespace

std::vector<Lane> lanes_of(const Session& session, const Settings& settings) {
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Lane lane;
    lane.factor = settings.factor(i);
    const FactorValue home = *settings.wall().find(lane.factor);
    const FactorValue* other = settings.baseline().find(lane.factor);
    const Factor* known = session.campaign().find(lane.factor);
    std::vector<FactorValue> levels;
    if (known != nullptr) levels = known->levels;
    const double* to = std::get_if<double>(&home);
    const double* from = other != nullptr ? std::get_if<double>(other) : nullptr;
    if (to != nullptr && from != nullptr) {
      std::vector<double> numbers = {*to, *from};
      for (const FactorValue& level : levels) {
        if (const double* number = std::get_if<double>(&level)) numbers.push_back(*number);
      }
      std::sort(numbers.begin(), numbers.end());
      numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      if (*to < *from) std::reverse(numbers.begin(), numbers.end());
      for (const double number : numbers) lane.levels.emplace_back(number);
      const auto place = [&](double number) {
        return static_cast<int>(std::find(numbers.begin(), numbers.end(), number) -
                                numbers.begin());
      };
      lane.axis = {true, place(*from), place(*to), static_cast<int>(numbers.size()) - 1};
    } else {
      lane.levels.push_back(other != nullptr ? std::optional(*other) : std::nullopt);
      lane.levels.emplace_back(home);
      for (const FactorValue& level : levels) {
        if (level == home || (other != nullptr && level == *other)) continue;
        if (lane.levels.size() < kMostLevels) lane.levels.emplace_back(level);
      }
      lane.axis = {false, 0, 1, static_cast<int>(lane.levels.size()) - 1};
    }
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

std::vector<Axis> axes_of(const std::vector<Lane>& lanes) {
  std::vector<Axis> axes;
  for (const Lane& lane : lanes) axes.push_back(lane.axis);
  return axes;
}

}  // namespace greynic::causal
