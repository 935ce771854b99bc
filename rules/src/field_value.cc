#include "field_value.h"

#include <charconv>

namespace greynic::rules {

std::optional<std::uint64_t> number_from(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

U128 prefix_bits(MatchField field, unsigned length) {
  if (length == 0) return 0;
  const unsigned wild = info(field).width_bits - length;
  return full_mask(field) >> wild << wild;
}

std::optional<Masked> masked_from(MatchField field, std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto value = field_value_from_string(field, text.substr(0, slash));
  if (!value) return std::nullopt;
  if (slash == std::string_view::npos) return Masked{*value, full_mask(field)};
  const std::string_view tail = text.substr(slash + 1);
  const FieldFormat format = info(field).format;
  const bool address = format == FieldFormat::kIpv4 || format == FieldFormat::kIpv6;
  if (address && tail.find_first_of(".:xX") == std::string_view::npos) {
    const auto length = number_from(tail);
    if (!length || *length > info(field).width_bits) return std::nullopt;
    const U128 bits = prefix_bits(field, static_cast<unsigned>(*length));
    return Masked{*value & bits, bits};
  }
  const auto bits = field_value_from_string(field, tail);
  if (!bits) return std::nullopt;
  return Masked{*value & *bits, *bits};
}

std::vector<Masked> prefixes_of_range(std::uint32_t low, std::uint32_t high, unsigned width) {
  std::vector<Masked> prefixes;
  const std::uint64_t all = (std::uint64_t{1} << width) - 1;
  std::uint64_t next = low;
  while (next <= high) {
    std::uint64_t block = next == 0 ? all + 1 : next & (~next + 1);  // largest aligned block
    while (block > high - next + 1) block /= 2;
    prefixes.push_back({next, all & ~(block - 1)});
    next += block;
  }
  return prefixes;
}

}  // namespace greynic::rules
