#pragma once

/// From completions in time to a rate: slices of the measured time, a warm-up cut, a verdict.

#include <array>
#include <cstdint>
#include <optional>

#include "greynic/core/observation.h"

namespace greynic::verbs {

constexpr int kSlices = 20;

/// What completed in each slice of the measured time; one for each thread.
class Slices {
 public:
  Slices(std::int64_t begin_ns, std::int64_t end_ns);
  void add(std::int64_t at_ns, std::uint64_t messages);
  void merge(const Slices& other);

  struct Rate {
    double per_second = 0.0;
    std::optional<double> standard_error;
    SteadyState steady;
  };
  /// Messages a second between the first and the last completion of the slices that are kept: with
  /// few, moderated completions, counting against the slice borders would be off by one of them.
  [[nodiscard]] Rate rate() const;

 private:
  struct Slice {
    std::uint64_t messages = 0;
    std::uint64_t first_messages = 0;  ///< of its first completion
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
  };
  std::int64_t begin_ns_;
  std::int64_t slice_ns_;
  std::array<Slice, kSlices> slices_{};
};

}  // namespace greynic::verbs
