#pragma once

/// The constraint section of a PICT model.

#include <string_view>

#include "greynic/language/cover_model.h"
#include "text_cursor.h"

namespace greynic::language {

/// Reads constraints from the cursor to the end of its text and adds them to the model. Comment
/// lines must have been blanked.
[[nodiscard]] Result<void> read_pict_constraints(TextCursor cursor, CoverModel& model);

/// Case does not matter in PICT: neither in names nor in values.
[[nodiscard]] std::string pict_folded(std::string_view text);

/// The number that a whole text is; empty when it is none.
[[nodiscard]] std::optional<double> pict_number(std::string_view text);

}  // namespace greynic::language
