#include "greynic/rules/read_rules.h"

#include <fmt/core.h>

#include <array>

#include "greynic/files/json_file.h"
#include "line_text.h"
#include "readers.h"

namespace greynic::rules {
namespace {

using Parser = Result<RuleSet> (*)(std::string_view, const std::string&);

struct FormatInfo {
  Format format;
  std::string_view name;
  Parser parse;
};
constexpr std::array kFormats = {
    FormatInfo{Format::kClassbench, "classbench", parse_classbench},
    FormatInfo{Format::kOpenflow, "openflow", parse_openflow},
    FormatInfo{Format::kFields, "fields", parse_fields},
    FormatInfo{Format::kMegaflow, "megaflow", parse_megaflows},
    FormatInfo{Format::kTcFilter, "tc", parse_tc_filters},
    FormatInfo{Format::kLayout, "layout", parse_layout_rules},
};

/// What a single line looks like; empty when it tells nothing.
std::optional<Format> format_of_line(std::string_view line) {
  if (line.find("actions:") != std::string_view::npos) return Format::kMegaflow;
  if (line.find("actions=") != std::string_view::npos) return Format::kOpenflow;
  if (line.starts_with("NXST_FLOW") || line.starts_with("OFPST_FLOW")) return Format::kOpenflow;
  if (line.front() == '@') return Format::kClassbench;
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  const bool prefix = word.find('/') != std::string_view::npos &&
                      word.find_first_not_of("0123456789./") == std::string_view::npos;
  if (prefix) return Format::kClassbench;
  if (line.find('=') != std::string_view::npos) return Format::kFields;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Format format) {
  for (const FormatInfo& row : kFormats) {
    if (row.format == format) return row.name;
  }
  return {};
}

std::optional<Format> format_named(std::string_view name) {
  for (const FormatInfo& row : kFormats) {
    if (row.name == name) return row.format;
  }
  return std::nullopt;
}

std::optional<Format> detect_format(std::string_view text) {
  const std::string_view body = trimmed(text);
  if (body.empty()) return std::nullopt;
  if (body.front() == '{') return Format::kLayout;
  if (body.front() == '[') return Format::kTcFilter;
  constexpr std::size_t kLinesLookedAt = 20;  // headers and comments come before the first rule
  std::size_t seen = 0;
  for (const std::string_view raw : lines_of(text)) {
    const std::string_view line = trimmed(raw);
    if (line.empty() || line.front() == '#') continue;
    if (const auto format = format_of_line(line)) return format;
    if (++seen == kLinesLookedAt) break;
  }
  return std::nullopt;
}

Result<void> room_for(const RuleSet& set, std::size_t more, std::string_view place) {
  if (set.rules.size() + more <= kMostRules) return {};
  return fail(ErrorCode::kTooBig,
              fmt::format("{}: {}: with port ranges as prefixes the file holds more than {} rules; "
                          "split it, or make its ranges prefixes",
                          set.source, place, kMostRules));
}

Result<RuleSet> parse_rules(std::string_view text, const std::string& source,
                            std::optional<Format> format) {
  if (trimmed(text).empty()) {
    return fail(ErrorCode::kBadInput,
                source + ": is empty; there must be at least one rule in it");
  }
  if (!format) format = detect_format(text);
  if (!format) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: looks like none of the rule formats; name it with --format "
                            "(classbench, openflow, fields, megaflow, tc or layout)",
                            source));
  }
  for (const FormatInfo& row : kFormats) {
    if (row.format == *format) return row.parse(text, source);
  }
  return fail(ErrorCode::kInternal, "a rule format without a reader");
}

Result<RuleSet> read_rules(const std::string& path, std::optional<Format> format) {
  const auto text = files::read_text(path);
  if (!text) return pass_on(text);
  return parse_rules(*text, path, format);
}

}  // namespace greynic::rules
