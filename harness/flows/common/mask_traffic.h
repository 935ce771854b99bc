#pragma once

/// The rules and packets that put a configuration into practice: so many masks, so many rules with
/// each, so many distinct flows spread evenly over them.

#include <cstdint>

#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

struct MaskTraffic {
  RuleSet rules;
  Traffic traffic;  ///< each flow hits exactly one rule with a mask of its own class
};

struct MaskTrafficShape {
  std::uint32_t masks = 1;  ///< 0: one rule that matches everything
  std::uint32_t rules_per_mask = 1;
  std::uint32_t flows = 1;  ///< at least `masks` are made, so that every mask is in use
};

/// Most masks that can be told apart by source and destination prefix and port bits.
inline constexpr std::uint32_t kMostMasks = 10'000;

/// Table 0 gives each packet a class by the lower bits of its source MAC, kept as metadata; table 1
/// has the rules of each class under the class's own mask. Open vSwitch looks at the metadata
/// first, so a megaflow carries its own class's mask and nothing of the others. Rules forward to
/// `sink`. Same shape and seed, same rules and packets. kTooBig beyond kMostMasks or when rules do
/// not fit their mask.
[[nodiscard]] Result<MaskTraffic> mask_traffic(const MaskTrafficShape& shape,
                                               const std::string& sink, std::uint64_t seed);

}  // namespace greynic::flows
