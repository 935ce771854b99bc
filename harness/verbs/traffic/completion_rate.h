#pragma once

/// How many messages completed in each bin of the measured time; one set of bins for each thread.

#include <array>
#include <cstdint>
#include <optional>

#include "greynic/core/observation.h"

namespace greynic::verbs {

class CompletionBins {
 public:
  CompletionBins(std::int64_t begin_ns, std::int64_t end_ns);
  void add(std::int64_t at_ns, std::uint64_t messages);
  void merge(const CompletionBins& other);

  struct Rate {
    double per_second = 0.0;
    std::optional<double> standard_error;
    SteadyState steady;
  };
  /// By statistics/event_rate.h.
  [[nodiscard]] Rate rate() const;

 private:
  static constexpr int kBins = 2000;

  std::int64_t begin_ns_;
  std::int64_t bin_ns_;
  std::array<std::uint64_t, kBins> bins_{};
};

}  // namespace greynic::verbs
