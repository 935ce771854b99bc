#pragma once

/// From a delay that is allowed to a depth in bytes: allow x rtt x rate / 8, in whole numbers, so
/// that "as deep as the threshold" and "deeper" are told apart exactly.

#include <chrono>
#include <cstdint>
#include <string_view>

#include "greynic/core/result.h"
#include "greynic/core/units.h"

namespace greynic::burst {

struct Allowance {
  std::chrono::nanoseconds rtt{50'000};
  std::uint64_t share_e8 = 30'000'000;             ///< of the RTT, in units of 10^-8
  std::uint64_t bits_per_second = 10'000'000'000;  ///< at which the queue drains

  /// The greatest whole number of bytes that is not over the threshold.
  [[nodiscard]] std::uint64_t threshold_bytes() const;
  [[nodiscard]] double delay_ns() const {
    return static_cast<double>(rtt.count()) * static_cast<double>(share_e8) * 1e-8;
  }
};

/// "10gbps", "100mbps", "1.5tbps"; kBadInput without a unit, or beyond 1 bit/s to 1000 tbps.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);
/// "5%" in units of 10^-8; kBadInput without the sign, or beyond 10000%.
[[nodiscard]] Result<std::uint64_t> parse_allowed(std::string_view text);

}  // namespace greynic::burst
