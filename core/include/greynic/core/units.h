#pragma once

/// Units as types. Bandwidth is Gbit/s of 1e9 bit/s, sizes are bytes, times are nanoseconds inside
/// and microseconds in reports. Text always carries the unit ("2s", "4KiB"): a bare number is
/// refused, so nobody has to guess.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic {

/// A data rate. 1 Gbit/s is 1e9 bit/s, as link speeds are sold; never 2^30.
struct BitRate {
  double bits_per_second = 0.0;
  static constexpr BitRate from_gbps(double gbps) { return {gbps * 1e9}; }
  /// perftest prints "MB/sec" and means MiB/s (2^20 bytes).
  static constexpr BitRate from_mib_per_second(double mib) { return {mib * 1048576.0 * 8.0}; }
  /// ScalaCN's unit: MiB/s x 8/1024, i.e. 2^30 bit/s.
  static constexpr BitRate from_scalacn(double value) { return {value * 1073741824.0}; }
  [[nodiscard]] constexpr double gbps() const { return bits_per_second * 1e-9; }
  [[nodiscard]] constexpr double scalacn() const { return bits_per_second / 1073741824.0; }
  constexpr auto operator<=>(const BitRate&) const = default;
};

struct Bytes {
  std::uint64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
};

using Nanoseconds = std::chrono::duration<double, std::nano>;

/// "250ms", "2s", "1.5us", "3min", "1h". kBadInput without a unit, negative, or not finite.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// "64B", "4KiB", "8MiB", "1GiB", "10kB", "1MB". kBadInput without a unit or beyond 2^63.
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

/// "1.25 ms", "3 min 10 s": for people.
[[nodiscard]] std::string to_string(std::chrono::nanoseconds duration);

/// "64 B", "4 KiB", "8 MiB": for people; exact when the count is a multiple of the unit.
[[nodiscard]] std::string to_string(Bytes bytes);

/// The shortest text that reads back as the same double; whole numbers without a point.
[[nodiscard]] std::string number_to_string(double value);

}  // namespace greynic
