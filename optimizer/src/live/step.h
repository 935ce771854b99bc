#pragma once

/// Steps of a live layout on a State: the one way that they go, whoever takes them.

#include "greynic/optimizer/live.h"
#include "src/live/state.h"

namespace greynic::optimizer::live {

/// Puts the rule in, or takes it out, and proves what that concerns, mending what the proof finds.
/// False: it takes more than `most` index nodes and cubes to look at, or more work than a new layout,
/// or the state has no columns or table for the rule. Then no more steps are for the state; what it
/// does is right but for packets of the rule and of what is put into `doubtful`.
[[nodiscard]] bool put_in(State& state, RuleId id, KeptRule rule, LiveStep& step,
                          std::uint64_t most, std::vector<Match>* doubtful = nullptr);
[[nodiscard]] bool take_out(State& state, RuleId id, LiveStep& step, std::uint64_t most,
                            std::vector<Match>* doubtful = nullptr);
void weigh_rule(State& state, RuleId id, double weight);

/// A step, told to who takes it later.
struct Told {
  enum class Kind : std::uint8_t { kPutIn, kTakeOut, kWeigh, kOrder, kLines };
  Kind kind = Kind::kPutIn;
  RuleId id = 0;
  KeptRule rule = {};                     ///< of kPutIn
  double weight = 0.0;                    ///< of kWeigh
  std::uint64_t order = 0;                ///< of kOrder
  std::vector<std::uint32_t> lines = {};  ///< of kLines
};

/// To the rules by id alone.
void tell(std::vector<KeptRule>& rules, const Told& told);
/// To a layout. False: as above.
[[nodiscard]] bool tell(State& state, const Told& told, std::uint64_t most);

}  // namespace greynic::optimizer::live
