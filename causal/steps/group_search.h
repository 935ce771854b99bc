#pragma once

/// Settings that a wall cannot do without, several at a time: for laboratories that test in batches.
///
/// In each test of the first batch, beside the first tests of baseline and wall where there is room, a
/// group of settings is healed. Where that clears the wall, the group holds a term of every cause. All sets
/// of settings that the tests leave are kept with their chances (needed_sets.h), and the next batches heal
/// parts of all groups together, chosen so that their answers tell most of these sets apart (part_choice.h).
///
/// Example. {a, f} brings the wall among a to h, and the laboratory takes four tests at a time.
///
///     healed   a b     c d     e f     g h       clear, wall, clear, wall
///     healed   a       e       a e     b f       clear, wall, clear, clear: a and f
///
/// Where few sets are left, the tests that prove each of them, if it is the one, part them as well: its terms
/// alone, the wall without each of them, the terms but one. Where no set explains the tests, the wall has several
/// causes: what is surely needed by all of them is found, and the search goes on step by step.

#include "src/settings.h"

namespace greynic::causal {

/// The witness with each group healed, to be tested in one batch with it.
[[nodiscard]] std::vector<Id> first_groups(Session& session, Settings& settings);

struct Needed {
  Set settings;
  double confidence = 0.0;  ///< that they are all of a cause
};

/// Of the settings of `wall`, a wall. Empty where batches are small or noise is large too.
[[nodiscard]] Result<Needed> needed_settings(Session& session, Settings& settings, const Set& wall);

}  // namespace greynic::causal
