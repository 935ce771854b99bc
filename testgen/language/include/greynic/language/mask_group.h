#pragma once

/// Mask groups (core/mask_group.h) as parameters and clauses of a CoverModel.

#include <span>

#include "greynic/core/mask_group.h"
#include "greynic/language/cover_model.h"

namespace greynic::language {

/// Adds a group's factors and the clauses for its headers. kBadInput: as mask_factors says, or a
/// name that is taken.
[[nodiscard]] Result<void> add_mask_group(const MaskGroup& group, CoverModel& model);

/// Adds the factors for the groups' order; no two are in one place.
[[nodiscard]] Result<void> add_mask_order(std::span<const MaskGroup> groups, CoverModel& model);

/// The clauses alone, for a model that has the parameters: no bit is looked at without the header
/// that it needs. Levels that the model left out count for nothing.
void add_header_clauses(const MaskGroup& group, CoverModel& model);
void add_order_clauses(std::span<const MaskGroup> groups, CoverModel& model);

}  // namespace greynic::language
