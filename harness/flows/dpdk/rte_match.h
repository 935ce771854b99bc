#pragma once

/// The pattern half of rte_rules.h.

#include "dpdk/rte_rules.h"

namespace greynic::flows {

[[nodiscard]] Result<void> put_rte_pattern(RteRule& made, const Match& match);

/// Memory for a struct of this size that lives as long as the rule; zeroed.
[[nodiscard]] std::uint8_t* memory_for(RteRule& made, std::size_t bytes);

}  // namespace greynic::flows
