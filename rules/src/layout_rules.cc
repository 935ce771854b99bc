/// A layout as a rule set: the rules of a matcher get the matcher's position as their priority,
/// ranges are written out.

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "readers.h"

namespace greynic::rules {

Result<RuleSet> parse_layout_rules(std::string_view text, const std::string& source) {
  auto read = files::layout_from_text(text, source);
  if (!read) return pass_on(read);
  const Layout layout = without_ranges(std::move(*read));
  RuleSet set{{}, source};
  for (const LayoutTable& table : layout.tables) {
    for (std::size_t position = 0; position < table.matchers.size(); ++position) {
      for (FlowRule rule : table.matchers[position].rules) {
        rule.table = table.id;
        rule.priority = static_cast<RulePriority>(position);
        if (rule.from.empty()) rule.from = {static_cast<std::uint32_t>(set.rules.size())};
        set.rules.push_back(std::move(rule));
      }
    }
  }
  if (set.rules.empty()) return fail(ErrorCode::kBadInput, source + ": the layout has no rule");
  return set;
}

}  // namespace greynic::rules
