#include "greynic/core/layout_limits.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace greynic {
namespace {

/// Tables that several others jump to, though devices of this kind allow one.
Result<void> none_is_shared(const Layout& layout) {
  std::set<std::uint32_t> there;
  for (const LayoutTable& table : layout.tables) there.insert(table.id);
  std::set<std::pair<std::uint64_t, std::uint32_t>> entrances;
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        for (const Action& action : rule.actions) {
          if (action.kind == ActionKind::kJump &&
              there.contains(static_cast<std::uint32_t>(action.number)))
            entrances.emplace(action.number, table.id);
        }
      }
    }
  }
  for (auto place = entrances.begin(); place != entrances.end(); ++place) {
    const auto next = std::next(place);
    if (next == entrances.end() || next->first != place->first) continue;
    return fail(ErrorCode::kTooBig,
                fmt::format("tables {} and {} both jump to table {}; each table may be entered "
                            "from one other only",
                            place->second, next->second, place->first));
  }
  return {};
}

}  // namespace

Result<void> keeps_to(const Layout& layout, const LayoutLimits& limits) {
  std::size_t recipes = 0;
  for (const LayoutTable& table : layout.tables) {
    if (table.id > limits.last_table) {
      return fail(ErrorCode::kTooBig, fmt::format("there is a table {}; the last may be {}",
                                                  table.id, limits.last_table));
    }
    std::size_t rules = 0;
    for (const Matcher& matcher : table.matchers) {
      rules += matcher.rules.size();
      if (matcher.mask.ranges().size() > limits.most_ranges) {
        return fail(
            ErrorCode::kTooBig,
            fmt::format("the mask {} compares {} fields as ranges; {} may be",
                        to_string(matcher.mask), matcher.mask.ranges().size(), limits.most_ranges));
      }
      const std::size_t own = limits.recipes(matcher.mask);
      if (own > limits.most_chained) {
        return fail(ErrorCode::kTooBig,
                    fmt::format("the mask {} takes {} recipes; {} may be chained",
                                to_string(matcher.mask), own, limits.most_chained));
      }
      recipes += own;
    }
    if (rules > limits.most_rules) {
      return fail(ErrorCode::kTooBig, fmt::format("table {} has {} rules; it may have {}", table.id,
                                                  rules, limits.most_rules));
    }
  }
  if (recipes > limits.most_recipes) {
    return fail(ErrorCode::kTooBig,
                fmt::format("the layout's {} matchers take {} recipes; there may be {}",
                            layout.matcher_count(), recipes, limits.most_recipes));
  }
  return limits.shared_tables ? Result<void>{} : none_is_shared(layout);
}

std::string to_string(const LayoutLimits& limits) {
  std::vector<std::string> parts;
  if (!limits.cuts_pay) parts.emplace_back("no jumps, as they save it nothing");
  if (limits.last_table < LayoutLimits{}.last_table) {
    parts.push_back(fmt::format("tables up to {}", limits.last_table));
  }
  if (!limits.shared_tables) parts.emplace_back("each table entered from one other");
  if (limits.most_ranges > 0) {
    parts.push_back(fmt::format("{} ranges a matcher", limits.most_ranges));
  }
  if (limits.most_rules != LayoutLimits::kNoLimit) {
    parts.push_back(fmt::format("{} rules a table", limits.most_rules));
  }
  if (limits.most_recipes != LayoutLimits::kNoLimit) {
    parts.push_back(fmt::format("{} recipes for all matchers", limits.most_recipes));
  }
  if (limits.most_chained != LayoutLimits::kNoLimit) {
    parts.push_back(fmt::format("{} recipes for one", limits.most_chained));
  }
  return parts.empty() ? "any layout" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace greynic
