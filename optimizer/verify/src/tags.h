#pragma once

/// Tags: metadata and registers that a layout sets on the way to a table of its own, to match them
/// there. What a packet carries is known in each table that it comes to, so a layout with tags is a
/// longer one without: a table once for each tag that packets bring along, with the rules that ask
/// for it. A tag that nothing behind a jump asks for is forgotten there, so tables of the slow path
/// are there once.

#include <optional>
#include <set>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::verify {

/// The layout without tags, empty where it has none; tables that it needs besides go to `added`, the tables that only the
/// layout has. A field is a tag when no rule of the set looks at it or sets it, and no foreign action
/// names it: then it makes no difference where the packet leaves. kTooBig: more than a million tables
/// would come out. kUnsupported: a tag that is known in part is compared with a range.
[[nodiscard]] Result<std::optional<Layout>> without_tags(const RuleSet& rules, const Layout& layout,
                                                         std::set<std::uint64_t>& added);

}  // namespace greynic::verify
