#include "greynic/outlets/influx.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace greynic::outlets {
namespace {

/// A backslash before each of these characters. Line breaks and other control characters end a line
/// or are refused, so they become blanks.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20;
    const char shown = control ? ' ' : c;
    if (special.find(shown) != std::string_view::npos) out += '\\';
    out += shown;
  }
  return out;
}

/// Of a tag or a key. A backslash that ends one would swallow the character behind it, and cannot
/// be escaped: a slash stands for it.
std::string name_of(std::string_view text) {
  std::string out(text);
  for (std::size_t at = out.size(); at > 0 && out[at - 1] == '\\'; --at) out[at - 1] = '/';
  return escaped(out, ",= ");
}

}  // namespace

InfluxPoint::InfluxPoint(std::string_view measurement) : head_(name_of(measurement)) {}

InfluxPoint& InfluxPoint::tag(std::string_view key, std::string_view value) {
  if (!value.empty()) head_ += fmt::format(",{}={}", name_of(key), name_of(value));
  return *this;
}

InfluxPoint& InfluxPoint::field(std::string_view key, std::string_view value) {
  fields_ += fmt::format("{}{}={}", fields_.empty() ? "" : ",", name_of(key), value);
  return *this;
}

InfluxPoint& InfluxPoint::number(std::string_view key, double value) {
  return std::isfinite(value) ? field(key, fmt::format("{}", value)) : *this;
}

InfluxPoint& InfluxPoint::count(std::string_view key, std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return integer(key, static_cast<std::int64_t>(std::min(value, kMost)));
}

InfluxPoint& InfluxPoint::integer(std::string_view key, std::int64_t value) {
  return field(key, fmt::format("{}i", value));
}

InfluxPoint& InfluxPoint::flag(std::string_view key, bool value) {
  return field(key, value ? "true" : "false");
}

InfluxPoint& InfluxPoint::text(std::string_view key, std::string_view value) {
  return field(key, fmt::format("\"{}\"", escaped(value, "\"\\")));
}

std::string InfluxPoint::line(std::optional<std::int64_t> unix_ns) const {
  if (fields_.empty()) return {};
  return unix_ns ? fmt::format("{} {} {}\n", head_, fields_, *unix_ns)
                 : fmt::format("{} {}\n", head_, fields_);
}

}  // namespace greynic::outlets
