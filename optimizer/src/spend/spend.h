#pragma once

/// Spends the entries that a finished plan leaves: on copies of exits, and on matchers that become one. What
/// spares most for an entry comes first.

#include "src/chained/plan.h"
#include "src/spend/uniting.h"

namespace greynic::optimizer::spend {

/// `effect`: by unit; units of the same may change places.
void spend(chained::Plan& plan, std::size_t room, const std::vector<std::uint32_t>& effect,
           Uniting uniting);

}  // namespace greynic::optimizer::spend
