#include "domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "greynic/core/units.h"

namespace greynic::model {
namespace {

// Where only one number of masks was seen there is no width; the published surfaces span this many.
constexpr double kMaskWidth = 20.0;

bool is_mask_factor(std::string_view name) {
  return name.ends_with("_masks") && find_factor(name) != nullptr;
}

const FactorValue* value_of(const Configuration& configuration, const Configuration& assumed,
                            const std::string& name) {
  if (const FactorValue* value = configuration.find(name)) return value;
  if (const FactorValue* value = assumed.find(name)) return value;
  const FactorInfo* info = find_factor(name);
  return info == nullptr ? nullptr : &info->standard;
}

/// Widths between a value and the range; 0 inside.
double widths_outside(std::string_view name, const Range& range, double mask_width, double value) {
  if (value >= range.low && value <= range.high) return 0.0;
  const double edge = value > range.high ? range.high : range.low;
  if (is_mask_factor(name)) return std::abs(value - edge) / mask_width;
  if (range.low <= 0.0 || value <= 0.0) {
    const double width = std::max(range.high - range.low, std::max(1.0, std::abs(range.high)));
    return std::abs(value - edge) / width;
  }
  const double width = std::max(std::log(range.high / range.low), std::log(2.0));
  return std::abs(std::log(value / edge)) / width;
}

}  // namespace

void Domain::include(const Configuration& configuration, std::span<const std::string> factors) {
  for (const std::string& name : factors) {
    const FactorValue* value = value_of(configuration, {}, name);
    if (value == nullptr) continue;
    if (const double* number = std::get_if<double>(value)) {
      const auto [place, is_new] = numeric.try_emplace(name, Range{*number, *number});
      if (!is_new) {
        place->second.low = std::min(place->second.low, *number);
        place->second.high = std::max(place->second.high, *number);
      }
    } else {
      auto& seen = categories[name];
      const std::string text = to_string(*value);
      const auto place = std::lower_bound(seen.begin(), seen.end(), text);
      if (place == seen.end() || *place != text) seen.insert(place, text);
    }
  }
}

Outside Domain::outside(const Configuration& configuration, const Configuration& assumed) const {
  double mask_width = 0.0;
  for (const auto& [name, range] : numeric) {
    if (is_mask_factor(name)) mask_width = std::max(mask_width, range.high - range.low);
  }
  if (mask_width <= 0.0) mask_width = kMaskWidth;
  Outside result;
  for (const auto& [name, range] : numeric) {
    const FactorValue* value = value_of(configuration, assumed, name);
    const double* number = value == nullptr ? nullptr : std::get_if<double>(value);
    if (number == nullptr) continue;
    const double distance = widths_outside(name, range, mask_width, *number);
    if (distance <= 0.0) continue;
    result.distance = std::max(result.distance, distance);
    result.factors.push_back(fmt::format("{}={} (fitted {} to {})", name, number_to_string(*number),
                                         number_to_string(range.low),
                                         number_to_string(range.high)));
  }
  for (const auto& [name, seen] : categories) {
    const FactorValue* value = value_of(configuration, assumed, name);
    if (value == nullptr) continue;
    const std::string text = to_string(*value);
    if (std::binary_search(seen.begin(), seen.end(), text)) continue;
    result.distance = std::max(result.distance, 1.0);
    result.factors.push_back(fmt::format("{}={} (never measured)", name, text));
  }
  return result;
}

}  // namespace greynic::model
