#include "register_use.h"

#include <cctype>
#include <charconv>
#include <string_view>

namespace greynic::verify {
namespace {

constexpr unsigned kFirst = static_cast<unsigned>(MatchField::kReg0);
constexpr unsigned kLast = static_cast<unsigned>(MatchField::kReg15);
constexpr unsigned kAll = 0xffff;

unsigned bit_of(MatchField field) {
  const auto index = static_cast<unsigned>(field);
  return index >= kFirst && index <= kLast ? 1U << (index - kFirst) : 0;
}

/// The register that a copy from something that is no register goes to; empty for any other action.
std::optional<unsigned> copied_into(const Action& action) {
  constexpr std::string_view kMove = "move:";
  constexpr std::string_view kInto = "->NXM_NX_REG";
  if (action.kind != ActionKind::kOther) return std::nullopt;
  const std::string_view text = action.text;
  const std::size_t into = text.find(kInto);
  if (!text.starts_with(kMove) || into == std::string_view::npos) return std::nullopt;
  const std::string_view from = text.substr(kMove.size(), into - kMove.size());
  if (from.find("REG") != std::string_view::npos || from.find(',') != std::string_view::npos) {
    return std::nullopt;
  }
  const char* const begin = text.data() + into + kInto.size();
  const char* const end = text.data() + text.size();
  unsigned number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  // One action and no more: nothing may follow the brackets.
  if (error != std::errc{} || stop == end || *stop != '[' || number > kLast - kFirst ||
      std::string_view(stop, end).find(']') + 1 != static_cast<std::size_t>(end - stop)) {
    return std::nullopt;
  }
  return number;
}

/// Registers that a foreign text may mean: "reg3", "NXM_NX_REG3"; all when it names an overlay of
/// several (xreg1, xxreg0).
unsigned named_in(std::string_view text) {
  unsigned found = 0;
  for (std::size_t i = 0; i + 3 < text.size(); ++i) {
    const auto lower = [&](std::size_t at) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
    };
    if (lower(i) != 'r' || lower(i + 1) != 'e' || lower(i + 2) != 'g') continue;
    unsigned number = 0;
    const auto [stop, error] =
        std::from_chars(text.data() + i + 3, text.data() + text.size(), number);
    if (error != std::errc{}) continue;
    if ((i > 0 && lower(i - 1) == 'x') || number > kLast - kFirst) return kAll;
    found |= 1U << number;
  }
  return found;
}

}  // namespace

void RegistersInUse::note(const FlowRule& rule) {
  for (const FieldMatch& part : rule.match.fields()) used_ |= bit_of(part.field);
  for (const FieldRange& range : rule.match.ranges()) used_ |= bit_of(range.field);
  for (const Action& action : rule.actions) {
    if (action.kind == ActionKind::kSetField) used_ |= bit_of(action.field);
    if (!copied_into(action)) used_ |= named_in(action.text);
  }
}

RegistersInUse::RegistersInUse(const RuleSet& rules, const Layout& layout) {
  for (const FlowRule& rule : rules.rules) note(rule);
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) note(rule);
    }
  }
}

bool RegistersInUse::only_looks(const Action& action) const {
  const auto target = copied_into(action);
  return target && (used_ >> *target & 1) == 0;
}

TagFields::TagFields(const RuleSet& rules, const Layout& layout) {
  const auto use = [&](MatchField field) {
    used_ |= bit_of(field);
    metadata_used_ = metadata_used_ || field == MatchField::kMetadata;
  };
  const auto note_texts = [&](const FlowRule& rule) {
    for (const Action& action : rule.actions) {
      used_ |= named_in(action.text);
      metadata_used_ = metadata_used_ || action.text.find("etadata") != std::string::npos ||
                       action.text.find("METADATA") != std::string::npos;
    }
  };
  for (const FlowRule& rule : rules.rules) {
    for (const FieldMatch& part : rule.match.fields()) use(part.field);
    for (const Action& action : rule.actions) {
      if (action.kind == ActionKind::kSetField) use(action.field);
    }
    note_texts(rule);
  }
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) note_texts(rule);
    }
  }
}

bool TagFields::is_tag(MatchField field) const {
  if (field == MatchField::kMetadata) return !metadata_used_;
  const unsigned bit = bit_of(field);
  return bit != 0 && (used_ & bit) == 0;
}

}  // namespace greynic::verify
