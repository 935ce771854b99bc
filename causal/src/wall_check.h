#pragma once

/// Is this configuration really worse than the baseline, by the campaign's share? A sequential test
/// by Bayes' rule: the noise, the baseline's mean and the depth of the wall are all unknown, and
/// any test may have stalled. Baseline and configuration take turns, so that a device that stays
/// slow after a wall is noticed.

#include "session.h"

namespace greynic::causal {

struct WallCheck {
  Verdict verdict = Verdict::kUndecided;
  double chance = 0.5;  ///< that it is a wall
  std::vector<std::string> notes;
};

/// Orders tests until it is sure at the session's confidence.
[[nodiscard]] Result<WallCheck> check_wall(Session& session, Id configuration);

/// Few values say little about the noise: whether it may be large beside the depth of this wall.
[[nodiscard]] bool may_be_noisy(Session& session, Id wall);

}  // namespace greynic::causal
