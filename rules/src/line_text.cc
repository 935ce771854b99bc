#include "line_text.h"

#include <fmt/core.h>

#include <algorithm>

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
