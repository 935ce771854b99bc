#include "greynic/core/units.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace greynic {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array<Unit, 8> kTimeUnits = {{{"ns", 1},
                                             {"us", 1e3},
                                             {"ms", 1e6},
                                             {"s", 1e9},
                                             {"sec", 1e9},
                                             {"min", 60e9},
                                             {"h", 3600e9},
                                             {"d", 86400e9}}};
constexpr std::array<Unit, 11> kByteUnits = {{{"B", 1},
                                              {"KiB", 1024.0},
                                              {"MiB", 1048576.0},
                                              {"GiB", 1073741824.0},
                                              {"TiB", 1099511627776.0},
                                              {"kB", 1e3},
                                              {"KB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"TB", 1e12},
                                              {"bytes", 1}}};

/// Splits "1.5us" into number and unit and multiplies; empty when either part is not known.
template <std::size_t N>
std::optional<double> scaled(std::string_view text, const std::array<Unit, N>& units) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0.0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& candidate : units) {
    if (candidate.name == unit) return number * candidate.scale;
  }
  return std::nullopt;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto value = scaled(text, kTimeUnits);
  if (!value || *value >= 9.2e18) {
    return fail(ErrorCode::kBadInput,
                fmt::format("'{}' is not a duration; write a number with its unit, such as 250ms, "
                            "2s or 3min",
                            text));
  }
  return std::chrono::nanoseconds(std::llround(*value));
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto value = scaled(text, kByteUnits);
  if (!value || *value >= 9.2e18) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("'{}' is not a size; write a number with its unit, such as 64B, 4KiB or "
                    "8MiB",
                    text));
  }
  return Bytes{static_cast<std::uint64_t>(std::llround(*value))};
}

std::string to_string(std::chrono::nanoseconds duration) {
  const auto ns = static_cast<double>(duration.count());
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  const auto seconds = std::llround(ns / 1e9);
  if (seconds < 60) return fmt::format("{:.3g} s", ns / 1e9);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string to_string(Bytes bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes.count);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kNames[unit]);
}

std::string number_to_string(double value) {
  if (std::nearbyint(value) == value && std::abs(value) < 9007199254740992.0) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{}", value);
}

}  // namespace greynic
