#include "data/domain.h"

#include <fmt/core.h>

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

double mask_width_of(const std::map<std::string, Range>& numeric) {
  double width = 0.0;
  for (const auto& [name, range] : numeric) {
    if (is_mask_factor(name)) width = std::max(width, range.high - range.low);
  }
  return width > 0.0 ? width : kMaskWidth;
}

/// Widths between a value and the range; 0 inside.
double widths_outside(std::string_view name, const Range& range,
                      const std::map<std::string, Range>& numeric, double value) {
  if (value >= range.low && value <= range.high) return 0.0;
  const double edge = value > range.high ? range.high : range.low;
  if (is_mask_factor(name)) return std::abs(value - edge) / mask_width_of(numeric);
  return widths_by_ratio(range, value);
}

}  // namespace

void Range::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

double widths_by_ratio(const Range& range, double value) {
  if (value >= range.low && value <= range.high) return 0.0;
  const double edge = value > range.high ? range.high : range.low;
  if (range.low <= 0.0 || value <= 0.0) {
    const double width = std::max(range.high - range.low, std::max(1.0, std::abs(range.high)));
    return std::abs(value - edge) / width;
  }
  const double width = std::max(std::log(range.high / range.low), std::log(2.0));
  return std::abs(std::log(value / edge)) / width;
}

void Domain::include(const Configuration& configuration, std::span<const std::string> factors) {
  for (const std::string& name : factors) {
    const FactorValue* value = value_of(configuration, {}, name);
    if (value == nullptr) continue;
    if (const double* number = std::get_if<double>(value)) {
      numeric.try_emplace(name, Range{*number, *number}).first->second.include(*number);
    } else {
      auto& seen = categories[name];
      const std::string text = to_string(*value);
      const auto place = std::lower_bound(seen.begin(), seen.end(), text);
      if (place == seen.end() || *place != text) seen.insert(place, text);
    }
  }
}

void Domain::include_in_flight(double requests) {
  if (!requests_in_flight) requests_in_flight = Range{requests, requests};
  requests_in_flight->include(requests);
}

double Domain::distance_along(const std::string& factor, const FactorValue& value) const {
  if (const auto range = numeric.find(factor); range != numeric.end()) {
    const double* number = std::get_if<double>(&value);
    return number == nullptr ? 1.0 : widths_outside(factor, range->second, numeric, *number);
  }
  const auto seen = categories.find(factor);
  if (seen == categories.end()) return 0.0;
  const auto& levels = seen->second;
  return std::binary_search(levels.begin(), levels.end(), to_string(value)) ? 0.0 : 1.0;
}

Outside Domain::outside(const Configuration& configuration, const Configuration& assumed) const {
  Outside result;
  const auto judge = [&](const std::string& name, const auto& seen) {
    const FactorValue* value = value_of(configuration, assumed, name);
    if (value == nullptr) return;
    const double distance = distance_along(name, *value);
    if (distance <= 0.0) return;
    result.distance = std::max(result.distance, distance);
    result.factors.push_back(fmt::format("{}={} ({})", name, to_string(*value), seen()));
  };
  for (const auto& [name, range] : numeric) {
    judge(name, [&range = range] {
      return fmt::format("fitted {} to {}", number_to_string(range.low),
                         number_to_string(range.high));
    });
  }
  for (const auto& [name, seen] : categories) judge(name, [] { return "never measured"; });
  return result;
}

}  // namespace greynic::model
