#pragma once

/// Squared errors of a law by region (message size, connections, batch), asked for at any setting.
///
/// A law may be right at one size and miss a cache or a dip at another; one figure for all would
/// make its intervals too wide here and too narrow there.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "data/setting.h"

namespace greynic::model {

class RegionErrors {
 public:
  /// What is known near a setting. Errors count the more the nearer they are, over two octaves of
  /// each axis.
  struct Near {
    double weight = 0.0;       ///< errors nearby, by nearness
    double mean_square = 0.0;  ///< of theirs; 0 where none is near
    double nearness = 0.0;     ///< of the nearest: 1 here, 0 two octaves away
  };

  /// A squared error of a logarithm; negative where less than the scatter of points, taken off, is
  /// left of it.
  void add(const Setting& setting, double squared_error);
  [[nodiscard]] Near near(const Setting& setting) const;

  /// [[log2 bytes, log2 QPs, log2 batch, errors, their mean square], ...]; see
  /// docs/formats/model.md.
  [[nodiscard]] nlohmann::json to_json() const;
  /// Throws nlohmann::json::exception where the document has another shape.
  [[nodiscard]] static RegionErrors from_json(const nlohmann::json& rows);

 private:
  static constexpr int kAxes = 3;

  struct Region {
    std::array<double, kAxes> place{};  ///< whole octaves
    double count = 0.0;
    double mean_square = 0.0;
  };

  static std::array<double, kAxes> place_of(const Setting& setting);

  std::vector<Region> regions_;
};

}  // namespace greynic::model
