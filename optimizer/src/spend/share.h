#pragma once

/// Equal tables of one layout become one, to which all of their jumps lead. Products of lists, say of
/// addresses and of ports, leave many: a table of the same ports behind each address.

#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

/// The first table stays first, and stays. No jumps among the tables form a loop.
[[nodiscard]] std::vector<LayoutTable> share_equal_tables(std::vector<LayoutTable> tables);

[[nodiscard]] std::size_t rules_in(const std::vector<LayoutTable>& tables);

}  // namespace greynic::optimizer
