#pragma once

/// Is this configuration really worse than the baseline, by the campaign's share? A sequential test
/// by Bayes' rule: the noise, the baseline's mean and the depth of the wall are all unknown, and
/// any test may have stalled. Baseline and configuration take turns, so that a device that stays
/// slow after a wall is noticed.
///
/// Where noise is small, a search may begin as soon as a wall is likely: its tests tell of the noise
/// and of the wall, so the check that follows needs few more, or none.

#include <functional>

#include "session.h"

namespace greynic::causal {

struct WallCheck {
  Verdict verdict = Verdict::kUndecided;
  double chance = 0.5;  ///< that it is a wall
  bool sure = false;    ///< at the session's confidence; a likely wall is not
  std::vector<std::string> notes;
};

enum class Check {
  kAlone,
  kBeforeSearch,  ///< a likely wall is enough where noise is small
  kAfterSearch,   ///< noise is known from the search's tests
};

/// Orders tests until it is sure at the session's confidence, or as sure as is asked. `begin_search`: what
/// the search would ask first. Where that is clear, right after the wall, it tells that the device does not
/// stay slow, so the baseline need not be asked for that.
[[nodiscard]] Result<WallCheck> check_wall(
    Session& session, Id configuration, Check how = Check::kAlone,
    const std::function<std::optional<Id>()>& begin_search = {});

/// Few values say little about the noise: whether it may be large beside the depth of this wall.
[[nodiscard]] bool may_be_noisy(Session& session, Id wall);

}  // namespace greynic::causal
