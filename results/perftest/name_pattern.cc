#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "perftest/log.h"

namespace greynic::results {
namespace {

/// A run of literal text, preceded by a placeholder (none at the start of the pattern).
struct Piece {
  std::optional<std::string> placeholder;  ///< factor name, or "*"
  std::string literal;                     ///< empty only after the last placeholder
};

Result<std::vector<Piece>> parse_pattern(const std::string& pattern) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kBadInput,
                fmt::format("name pattern \"{}\": {}; write {{factor}} or {{*}} between fixed text",
                            pattern, why));
  };
  std::vector<Piece> pieces(1);
  std::size_t at = 0;
  while (at < pattern.size()) {
    if (pattern[at] == '}') return refuse("'}' without '{'");
    if (pattern[at] != '{') {
      pieces.back().literal += pattern[at++];
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (end == std::string::npos) return refuse("'{' without '}'");
    const std::string name = pattern.substr(at + 1, end - at - 1);
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (name.empty() || (name != "*" && !plain)) {
      return refuse(fmt::format("\"{{{}}}\" names no factor", name));
    }
    if (pieces.size() > 1 && pieces.back().literal.empty()) {
      return refuse("two placeholders side by side cannot be told apart");
    }
    for (const Piece& piece : pieces) {
      if (name != "*" && piece.placeholder == name) return refuse(name + " is there twice");
    }
    pieces.push_back({.placeholder = name, .literal = {}});
    at = end + 1;
  }
  return pieces;
}

/// The last parts of a path, as many as the pattern has.
std::string_view tail_of(std::string_view path, const std::string& pattern) {
  auto parts = std::count(pattern.begin(), pattern.end(), '/') + 1;
  std::size_t begin = path.size();
  while (begin > 0 && (path[begin - 1] != '/' || --parts > 0)) --begin;
  return path.substr(begin);
}

Result<FactorValue> read_level(const std::string& factor, std::string_view text) {
  if (const FactorInfo* info = find_factor(factor)) return parse_factor_value(info->type, text);
  if (const auto number = parse_number(text)) return FactorValue(*number);
  return FactorValue(std::string(text));
}

}  // namespace

Result<Configuration> settings_from_name(const std::string& pattern, const std::string& path) {
  auto pieces = parse_pattern(pattern);
  if (!pieces) return pass_on(pieces);
  const std::string_view name = tail_of(path, pattern);
  const auto misfit = [&] {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: the name \"{}\" does not fit the pattern \"{}\"", path, name, pattern));
  };
  if (!name.starts_with(pieces->front().literal)) return misfit();
  std::size_t at = pieces->front().literal.size();
  if (pieces->size() == 1 && at != name.size()) return misfit();
  Configuration settings;
  for (std::size_t i = 1; i < pieces->size(); ++i) {
    const auto& [placeholder, literal] = (*pieces)[i];
    // The first place where the next fixed text stands will do for all but the last piece, which
    // must end the name.
    const std::size_t least = at + (*placeholder == "*" ? 0 : 1);
    const bool last = i + 1 == pieces->size();
    std::size_t end = std::string_view::npos;
    if (!last) {
      end = name.find(literal, least);
    } else if (name.size() >= least + literal.size() && name.ends_with(literal)) {
      end = name.size() - literal.size();
    }
    if (end == std::string_view::npos) return misfit();
    if (*placeholder != "*") {
      auto level = read_level(*placeholder, name.substr(at, end - at));
      if (!level) {
        return level.error().while_doing(fmt::format("{}: {} in its name", path, *placeholder));
      }
      settings.set(*placeholder, std::move(*level));
    }
    at = end + literal.size();
  }
  return settings;
}

}  // namespace greynic::results
