#pragma once

/// Negation normal form of constraints: And and Or over positive atoms, with absence settled. Level
/// sets of conditional parameters may then contain the level "absent", which is the one after the
/// parameter's own levels.

#include "greynic/language/cover_model.h"

namespace greynic::testgen {

/// What an atom that reads an absent parameter counts as.
enum class Absent : std::uint8_t { kCountsAsTrue, kCountsAsFalse };

/// The result has kTrue, kFalse, kLevelIn, kCompare, kAnd, kOr and kIff only; a kCompare in it is
/// false when a parameter that it reads is absent. With kCountsAsTrue the result holds where the
/// expression is not false, with kCountsAsFalse where it is true; with `negated` the same for its
/// negation.
[[nodiscard]] language::Expr normal_form(const language::CoverModel& model,
                                         const language::Expr& expression, Absent absent,
                                         bool negated = false);

/// Levels that the space has for a parameter: its own, and "absent" when it is conditional.
[[nodiscard]] std::uint16_t space_levels(const language::ModelParameter& parameter);

}  // namespace greynic::testgen
