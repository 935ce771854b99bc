#pragma once

/// Which rules of a table are a product, and of which two fields.

#include <optional>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer::factored {

/// Rules of one table, one behind the other, that look at no field but these.
struct Run {
  std::size_t begin = 0, end = 0;           ///< places among the table's rules
  MatchField first = MatchField::kInPort;   ///< looked up first, with all fields but the second
  MatchField second = MatchField::kInPort;  ///< looked up in the class
};

/// The longest run around the fields that most rules of the table look at, first wins, where a table for each
/// class of what rules say of all fields but one leaves at most half of its rules; none otherwise.
[[nodiscard]] std::optional<Run> product_in(const std::vector<const FlowRule*>& table);

/// What a match asks of one field; no bits where it asks nothing.
[[nodiscard]] FieldMatch part_of(const Match& match, MatchField field);

[[nodiscard]] Match without(Match match, MatchField field);

}  // namespace greynic::optimizer::factored
