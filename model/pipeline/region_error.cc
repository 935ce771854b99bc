#include "pipeline/region_error.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace greynic::model {

std::array<double, RegionErrors::kAxes> RegionErrors::place_of(const Setting& setting) {
  return {std::log2(std::max(1.0, setting.bytes)), std::log2(std::max(1.0, setting.qps)),
          std::log2(std::max(1.0, setting.batch))};
}

void RegionErrors::add(const Setting& setting, double squared_error) {
  auto place = place_of(setting);
  for (double& octave : place) octave = std::round(octave);
  auto region = std::find_if(regions_.begin(), regions_.end(),
                             [&](const Region& r) { return r.place == place; });
  if (region == regions_.end()) region = regions_.insert(region, Region{.place = place});
  region->count += 1.0;
  region->mean_square += (squared_error - region->mean_square) / region->count;
}

RegionErrors::Near RegionErrors::near(const Setting& setting) const {
  constexpr double kOctaves = 2.0;
  const auto place = place_of(setting);
  Near result;
  for (const Region& region : regions_) {
    double nearness = 1.0;
    for (std::size_t a = 0; a < place.size() && nearness > 0.0; ++a) {
      nearness *= std::max(0.0, 1.0 - std::abs(place[a] - region.place[a]) / kOctaves);
    }
    if (nearness == 0.0) continue;
    result.weight += nearness * region.count;
    result.mean_square += nearness * region.count * region.mean_square;
    result.nearness = std::max(result.nearness, nearness);
  }
  if (result.weight > 0.0) result.mean_square /= result.weight;
  return result;
}

nlohmann::json RegionErrors::to_json() const {
  auto rows = nlohmann::json::array();
  for (const Region& region : regions_) {
    rows.push_back(
        {region.place[0], region.place[1], region.place[2], region.count, region.mean_square});
  }
  return rows;
}

RegionErrors RegionErrors::from_json(const nlohmann::json& rows) {
  RegionErrors errors;
  for (const auto& row : rows) {
    Region region;
    for (std::size_t a = 0; a < region.place.size(); ++a) region.place[a] = row.at(a).get<double>();
    region.count = row.at(kAxes).get<double>();
    region.mean_square = row.at(kAxes + 1).get<double>();
    errors.regions_.push_back(region);
  }
  return errors;
}

}  // namespace greynic::model
