#pragma once

/// What clear configurations say of the causes of a wall, wherever they come from: a plan, a cause that was
/// found before, a run. None of them holds a cause, unless something else in it heals that.
///
/// Of few factors every set of them may be a cause, and each clear configuration speaks against the sets that
/// it has as the wall has them. Of many nothing is said: there, to speak against the steps of a row alone was
/// tried, and saved nothing.
///
/// Example. a, b, c and d differ, and a plan was clear with {a b c}, {a d} and {b d} as in the wall.
///
///     row              a      a b      a b c      a b c d
///     odds before      none   none     none       all: d is a term, with c and perhaps a or b

#include "witness_search.h"

namespace greynic::causal {

/// The odds of each step of a row to be the first wall, `terms` being of the cause, from what is told by all
/// but the tests of the row's own steps. `odds` are those without any test.
void weigh_by_clear(Session& session, Settings& settings, const Growth& growth, const Set& terms,
                    std::vector<double>& odds);

}  // namespace greynic::causal
