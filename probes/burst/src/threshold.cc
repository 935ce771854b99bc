#include "greynic/burst/threshold.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace greynic::burst {
namespace {

__extension__ using Wide = unsigned __int128;

/// A number and what stands behind it, in small letters.
std::optional<std::pair<double, std::string>> number_and_unit(std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0.0) return std::nullopt;
  std::string unit;
  for (const char c : text.substr(static_cast<std::size_t>(end - text.data()))) {
    if (c != ' ' || !unit.empty()) unit += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return std::pair{number, unit};
}

}  // namespace

std::uint64_t Allowance::threshold_bytes() const {
  const Wide scaled =
      Wide{share_e8} * static_cast<std::uint64_t>(std::max<std::int64_t>(rtt.count(), 0));
  // At most 10^10 x 9.2 x 10^18 before the rate, so the rate comes in two steps.
  constexpr std::uint64_t kScale = 100'000'000ULL * 1'000'000'000ULL;
  const Wide whole = scaled / kScale, rest = scaled % kScale;
  const Wide bytes = (whole * bits_per_second + rest * bits_per_second / kScale) / 8;
  // (w r + floor(x)) / 8 rounds down as (w r + x) / 8 does.
  return static_cast<std::uint64_t>(std::min<Wide>(bytes, UINT64_MAX));
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  const auto found = number_and_unit(text);
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"bps", 1},   {"kbps", 1e3},   {"mbps", 1e6},   {"gbps", 1e9},   {"tbps", 1e12},
      {"bit/s", 1}, {"kbit/s", 1e3}, {"mbit/s", 1e6}, {"gbit/s", 1e9}, {"tbit/s", 1e12}};
  if (found) {
    for (const auto& [unit, scale] : kUnits) {
      if (found->second != unit) continue;
      const double rate = std::round(found->first * scale);
      if (rate >= 1.0 && rate <= 1e15) return static_cast<std::uint64_t>(rate);
    }
  }
  return fail(ErrorCode::kBadInput,
              fmt::format("'{}' is not a rate from 1 bps to 1000 tbps; write a number with its "
                          "unit, such as 100mbps, 10gbps or 1.6tbps",
                          text));
}

Result<std::uint64_t> parse_allowed(std::string_view text) {
  const auto found = number_and_unit(text);
  if (found && found->second == "%" && found->first <= 1e4) {
    return static_cast<std::uint64_t>(std::llround(found->first * 1e6));
  }
  return fail(ErrorCode::kBadInput,
              fmt::format("'{}' is not a share of the RTT from 0% to 10000%; write a percentage, "
                          "such as 5%",
                          text));
}

}  // namespace greynic::burst
