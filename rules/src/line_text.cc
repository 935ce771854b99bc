#include "text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace greynic::rules {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::vector<std::string_view>> split_outside_brackets(std::string_view text,
                                                                    char separator) {
  std::vector<std::string_view> parts;
  std::string open;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c);
    } else if (c == ')' || c == ']' || c == '}') {
      const char wanted = c == ')' ? '(' : (c == ']' ? '[' : '{');
      if (open.empty() || open.back() != wanted) return std::nullopt;
      open.pop_back();
    } else if (c == separator && open.empty()) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (!open.empty()) return std::nullopt;
  parts.push_back(text.substr(begin));
  return parts;
}

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

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string result(text.substr(0, kLongest));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  if (text.size() > kLongest) result += "...";
  return result;
}

tl::unexpected<Error> bad_line(const std::string& source, std::size_t line_index,
                               const Complaint& complaint) {
  return fail(ErrorCode::kBadInput,
              fmt::format("{}: line {}: {}", source, line_index + 1, complaint));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

Action mark_line(std::uint32_t line) {
  return {.kind = ActionKind::kSetField,
          .field = MatchField::kPacketMark,
          .value = line,
          .bits = full_mask(MatchField::kPacketMark)};
}

}  // namespace greynic::rules
