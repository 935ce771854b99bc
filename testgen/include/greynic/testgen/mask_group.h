#pragma once

/// A ternary match as a group of factors: which fields, which of their bits, and, with several
/// groups, in what order they are tried. A header that a field needs (core/match_field.h, `needs`)
/// is matched too, or the field is not: such header fields become factors with the values that are
/// needed as levels, beside "none", so fields of headers that exclude each other never meet in one
/// mask.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/testgen/cover_model.h"

namespace greynic::testgen {

/// How the bits of a field are chosen: each on its own (a factor a bit), a prefix (quarters of the
/// width), or the whole field or nothing.
enum class MaskBits : std::uint8_t { kEach, kPrefix, kWhole };

[[nodiscard]] std::optional<MaskBits> mask_bits_named(std::string_view name);

struct MaskGroup {
  std::string name;
  std::vector<MatchField> fields;
  MaskBits bits = MaskBits::kEach;
};

/// Adds the factors NAME.FIELD.BIT (each), NAME.FIELD (prefix, whole, headers) and their
/// constraints. kBadInput: a field twice, or a name that is taken.
[[nodiscard]] Result<void> add_mask_group(const MaskGroup& group, CoverModel& model);

/// Adds a factor NAME.order for each group, its place among them from 1; no two are the same.
[[nodiscard]] Result<void> add_mask_order(const std::vector<std::string>& names, CoverModel& model);

/// The mask that a row of the model says for a group; what the row does not look at is left out.
[[nodiscard]] Mask mask_of(const MaskGroup& group, const CoverModel& model,
                           const std::vector<int>& row);

}  // namespace greynic::testgen
