#pragma once

/// The rules and packets that put a configuration into practice on tc flower: one preference for
/// each mask, so that a packet is checked against those before its own.

#include "common/mask_traffic.h"

namespace greynic::flows {

inline constexpr std::uint32_t kMostFlowerMasks = 1024;  ///< prefixes of two addresses

/// A packet's destination port is its mask's number, so that it matches nowhere else; the rules of
/// a mask differ in their source port, the flows of a rule in nothing that a rule looks at. Rules
/// drop. kTooBig beyond kMostFlowerMasks, or beyond 4,096 rules with each.
[[nodiscard]] Result<MaskTraffic> flower_mask_traffic(const MaskTrafficShape& shape,
                                                      std::uint64_t seed);

}  // namespace greynic::flows
