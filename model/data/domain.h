#pragma once

/// Where a model was fitted, and how far a question lies outside of it.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/configuration.h"

namespace greynic::model {

/// Seen range of one numeric factor. Counts and sizes are compared by ratio, masks by difference.
struct Range {
  double low = 0.0;
  double high = 0.0;

  /// Widens the range by a value.
  void include(double value);
  bool operator==(const Range&) const = default;
};

/// How far a value lies outside a range of counts or sizes, in widths of the range, which is taken
/// as at least a doubling; 0 inside.
[[nodiscard]] double widths_by_ratio(const Range& range, double value);

struct Outside {
  double distance = 0.0;             ///< the largest over the factors, in widths of the seen range
  std::vector<std::string> factors;  ///< which lie outside, with both values, for people
};

struct Domain {
  std::map<std::string, Range> numeric;
  std::map<std::string, std::vector<std::string>> categories;  ///< sorted
  /// QPs times the depth of their queues. Each may have been measured alone and both together
  /// never, so their product, which is no factor, has a range of its own.
  std::optional<Range> requests_in_flight;

  /// Widens the domain by a configuration; `factors` are those that matter to the law.
  void include(const Configuration& configuration, std::span<const std::string> factors);
  void include_in_flight(double requests);
  [[nodiscard]] Outside outside(const Configuration& configuration,
                                const Configuration& assumed) const;
  /// Widths between one factor's value and the domain; 0 inside, and for factors that do not
  /// matter.
  [[nodiscard]] double distance_along(const std::string& factor, const FactorValue& value) const;
  bool operator==(const Domain&) const = default;
};

/// What a model remembers of the observations that made it.
struct FittedOn {
  Domain domain;
  std::size_t observations = 0;
  std::vector<std::string> findings;  ///< for people
};

}  // namespace greynic::model
