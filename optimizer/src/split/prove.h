#pragma once

/// What is emitted for hardware and a slow path together is proven to do what the rules do.

#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

/// Adds to `proof`. Errors: kInternal with a packet that shows the difference, kTooBig and others of verify().
[[nodiscard]] Result<void> prove_split(const RuleSet& rules, const Layout& layout, Proof& proof);

}  // namespace greynic::optimizer
