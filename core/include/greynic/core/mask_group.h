#pragma once

/// A ternary match as a group of factors: which fields of a packet a rule looks at and which of
/// their bits. A header that a field needs (match_field.h, `needs`) is matched too, or the field is
/// not: such header fields become factors with the values that are needed as levels, beside "none",
/// so fields of headers that exclude each other never meet in one mask. A header that the group
/// does not name is taken for granted.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/flow_rule.h"

namespace greynic {

/// One factor of a group, and what it says of the mask.
struct MaskFactor {
  Factor factor;
  MatchField field = MatchField::kInPort;
  std::optional<int> bit;  ///< with MaskBits::kEach: which bit of the field, 0 the lowest
  bool is_header = false;  ///< levels are values of the field, and "none"
};

/// The header that a field needs: one of these values of another field.
struct HeaderNeed {
  MatchField header = MatchField::kInPort;
  std::vector<std::string> values;
};

[[nodiscard]] std::optional<MaskBits> mask_bits_named(std::string_view name);

/// Empty: the field is there in every packet.
[[nodiscard]] std::optional<HeaderNeed> header_need(MatchField field);

/// NAME.FIELD.BIT (each), NAME.FIELD (prefix, whole, headers), in the order of the group's fields;
/// the first level is always that nothing is looked at. kBadInput: a field twice, or fields of
/// headers that exclude each other without the field that tells which is there.
[[nodiscard]] Result<std::vector<MaskFactor>> mask_factors(const MaskGroup& group);

/// NAME.order for each group: its place among them, from 1. Fewer than two have no order.
[[nodiscard]] std::vector<Factor> order_factors(std::span<const MaskGroup> groups);

/// What a configuration says of a group: the bits looked at, with the headers' values; other values
/// are zero. Factors that are not set, or absent, look at nothing. `group` passed mask_factors.
[[nodiscard]] Match match_of(const MaskGroup& group, const Configuration& configuration);

}  // namespace greynic
