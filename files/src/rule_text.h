#pragma once

/// Matches and masks as layouts write them.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::files {

/// What a rule asks of one field: "value", "address/length", "value/mask" or "low..high"; false for
/// any other text.
[[nodiscard]] bool set_from_text(Match& match, MatchField field, std::string_view text);
/// The bits of one field, as "0xffff", or "range"; false for any other text.
[[nodiscard]] bool add_from_text(Mask& mask, MatchField field, std::string_view text);

/// Names of fields, and what stands for them.
using FieldTexts = std::vector<std::pair<std::string_view, std::string>>;
[[nodiscard]] FieldTexts texts_of(const Match& match);
[[nodiscard]] FieldTexts texts_of(const Mask& mask);

}  // namespace greynic::files
