#pragma once

/// What is in a store, series by series.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "greynic/series/store.h"

namespace greynic::series {

struct Query {
  std::string host = "*";    ///< a pattern of the shell
  std::string metric = "*";  ///< of the series' name
  std::int64_t begin_ns = INT64_MIN, end_ns = INT64_MAX;
  std::int64_t step_ns = 0;  ///< one of kTierSteps, or 0 for the samples themselves
};

struct Summary {
  std::string host, source, name, labels, unit;
  std::uint8_t kind = 1;
  std::uint64_t samples = 0;
  std::int64_t first_ns = 0, last_ns = 0;
  std::string last;  ///< exact
  double least = 0, greatest = 0;
  // Of a histogram, at its last sample; least and greatest are its quantiles 0.5 and 0.99.
  std::uint64_t count = 0;
};

/// One value, or the bucket of a tier that begins then.
struct Point {
  const Group* group = nullptr;
  const Field* field = nullptr;
  std::uint32_t index = 0;
  std::int64_t time_ns = 0;
  std::uint64_t value = 0;  ///< of a tier: the last
  // Of a tier.
  std::uint64_t count = 0;
  double least = 0, greatest = 0, mean = 0;
};

/// In the order of host, name and labels; an array has a series for each index.
[[nodiscard]] Result<std::vector<Summary>> summarize(const std::string& directory,
                                                     const Query& query);
/// In the order in which the store holds them; words of histograms are left out.
[[nodiscard]] Result<void> visit_points(const std::string& directory, const Query& query,
                                        const std::function<void(const Point&)>& visit);
[[nodiscard]] Result<std::vector<Gap>> gaps_of(const std::string& directory, const Query& query);

[[nodiscard]] double value_of(const Field& field, std::uint64_t bits);
[[nodiscard]] std::string text_of(const Field& field, std::uint64_t bits);
/// The value below which that share of a histogram lies; `words` are the sum and the buckets.
[[nodiscard]] double quantile_of(const Field& field, std::span<const std::uint64_t> words,
                                 double share);

}  // namespace greynic::series
