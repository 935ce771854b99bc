#pragma once

/// Tables that are products written as two: who may, and what.
///
/// Access lists are made of sets: these addresses, at those ports. Written as rules they are each address with
/// each port, thousands of them; an OpenFlow conjunction resolved is such a product, too. Here a run of rules is
/// taken apart again by one field, say the port. What rules say of the other fields is looked up first, and jumps to
/// a table of what the rules of that class say of the port. Equal classes share one table.
///
/// Example: three addresses may reach four ports: 12 rules of one mask for each length of prefix on either side.
/// Taken apart, 3 jumps to one table of 4 rules.
///
/// Both lookups are one field by prefixes, the longest first (prefixes.h), with all else exact; so what matters
/// is what is decided for each value, not how many rules said it. What a class leaves undecided meets the rules
/// behind the run that its packets can still match, in the same small table.

#include <cstdint>
#include <map>
#include <set>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

struct FactoredRules {
  RuleSet rules;             ///< the same tables, and further ones for classes
  std::size_t products = 0;  ///< tables that were taken apart
};

struct FactorOptions {
  std::uint32_t first_free = 0;  ///< ids from here on are free
  std::uint32_t last_table = 0;
  double price = 0.0;                 ///< of an entry, in matchers tried by a packet on the mean
  double all_weight = 1.0;            ///< of the packets that enter anywhere
  std::set<MatchField> whole_fields;  ///< no entry looks at a part of these
};

using ArrivingTraffic = std::map<std::uint32_t, Traffic>;  // by table

/// Every table does to every packet what it did. Tables are taken apart where that leaves at most half of their rules.
[[nodiscard]] FactoredRules factor_tables(const RuleSet& rules, const ArrivingTraffic& arriving,
                                          const FactorOptions& options);

}  // namespace greynic::optimizer
