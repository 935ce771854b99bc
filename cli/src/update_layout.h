#pragma once

#include <string>

#include "greynic/core/flow_rule.h"
#include "greynic/loop/rule_input.h"
#include "greynic/optimizer/live.h"

namespace greynic::cli {

struct UpdateFlags {
  std::string layout;  ///< of the rules as they were
  loop::RuleInput was;
  double most_drift = optimizer::LiveOptions{}.max_drift;
  bool beside = false;  ///< full layouts in a second thread
};

/// A layout that came by steps, and what they took.
struct UpdatedLayout {
  Layout layout;
  std::string text;       ///< for people
  std::string json_text;  ///< schema `layout_update`
};

/// `greynic optimize --update`: brings the layout from the rules as they were to `rules`, step by step,
/// each proven, and has verify() judge the whole. `traffic` as the user gave it.
[[nodiscard]] Result<UpdatedLayout> update_layout(const UpdateFlags& flags, RuleSet rules,
                                                  const std::string& traffic,
                                                  const optimizer::OptimizeOptions& options,
                                                  std::uint64_t seed);

}  // namespace greynic::cli
