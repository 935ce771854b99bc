#include "src/split/prove.h"

#include <fmt/core.h>

#include "greynic/verify/verify.h"

namespace greynic::optimizer {

Result<void> prove_split(const RuleSet& rules, const Layout& layout, Proof& proof) {
  const auto verdict = verify::verify(rules, layout);
  if (!verdict) return verdict.error().while_doing("proving hardware and slow path");
  if (!verdict->equivalent) {
    return fail(ErrorCode::kInternal,
                fmt::format("hardware and slow path are wrong for the packet {}; please report the "
                            "rules",
                            to_string(verdict->counterexample->packet)));
  }
  proof.tables += layout.tables.size();
  proof.pairs += verdict->comparisons;
  proof.regions += verdict->regions;
  return {};
}

}  // namespace greynic::optimizer
