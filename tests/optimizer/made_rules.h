#pragma once

#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"

namespace greynic::optimizer {

/// "made:acl:600:31": filters of our own generator, as rules.
inline RuleSet made_rules(const std::string& name) {
  const auto filters = rules::made_filters_named(name);
  EXPECT_TRUE(filters && *filters);
  return rules::parse_rules(rules::made_filters(**filters).value(), name).value();
}

}  // namespace greynic::optimizer
