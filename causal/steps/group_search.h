#pragma once

/// Settings that a wall cannot do without, several at a time: for laboratories that test in batches.
///
/// In each test of the first batch, beside the first tests of baseline and wall where there is room, a
/// group of settings is healed. Where that clears the wall, the
/// group holds a term of every cause. Each one, two or three of its settings may be it: the next
/// batches heal parts of such groups, chosen so that their answers tell most of these sets apart.
///
/// Example. {a, f} brings the wall among a to h, and the laboratory takes four tests at a time.
///
///     healed   a b     c d     e f     g h       clear, wall, clear, wall
///     healed   a       b       e       f         clear, wall, wall, clear: a and f
///
/// What is found is no cause yet: whether these settings alone bring the wall is asked last, in one
/// batch with healing each of them, or before that where a batch has room. Where causes mask one another no group clears the wall, and
/// nothing is found.

#include "src/settings.h"

namespace greynic::causal {

/// The witness with each group healed, to be tested in one batch with it.
[[nodiscard]] std::vector<Id> first_groups(Session& session, Settings& settings);

/// Of the settings of `wall`, a wall. Empty where batches are small or noise is large too.
[[nodiscard]] Result<Set> needed_settings(Session& session, Settings& settings, const Set& wall);

}  // namespace greynic::causal
