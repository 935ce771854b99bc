/// Ranges written out as prefixes.

#include <algorithm>
#include <map>

#include "greynic/core/flow_rule.h"

namespace greynic {

std::vector<FieldMatch> prefixes_of(const FieldRange& range) {
  const U128 all = full_mask(range.field);
  std::vector<FieldMatch> prefixes;
  for (U128 next = range.low; next <= range.high;) {
    U128 wild = next == 0 ? all : (next & (~next + 1)) - 1;  // of the largest aligned block
    while (wild > range.high - next) wild >>= 1;
    prefixes.push_back({range.field, next, all & ~wild});
    if (range.high - next == wild) break;  // the next may not be a number of the field any more
    next += wild + 1;
  }
  return prefixes;
}

std::vector<Match> without_ranges(const Match& match) {
  Match plain;
  for (const FieldMatch& part : match.fields()) plain.set(part.field, part.value, part.bits);
  std::vector<Match> written = {std::move(plain)};
  for (const FieldRange& range : match.ranges()) {
    std::vector<Match> longer;
    for (const FieldMatch& prefix : prefixes_of(range)) {
      for (Match part : written) {
        part.set(prefix.field, prefix.value, prefix.bits);
        longer.push_back(std::move(part));
      }
    }
    written = std::move(longer);
  }
  return written;
}

bool has_ranges(const Layout& layout) {
  return std::any_of(layout.tables.begin(), layout.tables.end(), [](const LayoutTable& table) {
    return std::any_of(table.matchers.begin(), table.matchers.end(),
                       [](const Matcher& matcher) { return !matcher.mask.ranges().empty(); });
  });
}

Layout without_ranges(Layout layout) {
  if (!has_ranges(layout)) return layout;
  for (LayoutTable& table : layout.tables) {
    std::vector<Matcher> plain;
    for (Matcher& matcher : table.matchers) {
      if (matcher.mask.ranges().empty()) {
        plain.push_back(std::move(matcher));
        continue;
      }
      std::map<Mask, std::vector<FlowRule>> by_mask;
      for (const FlowRule& rule : matcher.rules) {
        const std::vector<Match> parts = without_ranges(rule.match);
        for (const Match& part : parts) {
          FlowRule written = rule;
          written.match = part;
          written.weight /= static_cast<double>(parts.size());
          by_mask[part.mask()].push_back(std::move(written));
        }
      }
      for (auto& [mask, rules] : by_mask) {
        plain.push_back({mask, 0, std::move(rules), matcher.idle_seconds});
      }
    }
    for (std::size_t i = 0; i < plain.size(); ++i) {
      plain[i].priority = static_cast<RulePriority>(i);
      for (FlowRule& rule : plain[i].rules) rule.priority = plain[i].priority;
    }
    table.matchers = std::move(plain);
  }
  return layout;
}

}  // namespace greynic
