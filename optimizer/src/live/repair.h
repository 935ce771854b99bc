#pragma once

/// Gives a rule the packets that a fault shows: by an entry in a matcher that looks at the right
/// bits already, where there is one, else in a new matcher.

#include "src/live/proof.h"

namespace greynic::optimizer::live {

/// False when the fault is none that an entry mends.
[[nodiscard]] bool repair(State& state, const Fault& fault, Changes& changes);

}  // namespace greynic::optimizer::live
