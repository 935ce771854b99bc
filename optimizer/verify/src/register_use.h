#pragma once

/// Actions that only look: "move:FIELD[..]->NXM_NX_REGn[..]" copies a header field into a register.
/// Where nothing in the layout looks at that register, the copy changes no packet's fate. Open
/// vSwitch's layouts use it to look at whole fields (greynic/flows/few_masks.h).

#include <optional>

#include "greynic/core/flow_rule.h"

namespace greynic::verify {

/// The registers that some rule of the set or the layout matches, sets or names in a foreign
/// action, copies into registers aside.
class RegistersInUse {
 public:
  RegistersInUse(const RuleSet& rules, const Layout& layout);
  /// Does the action copy a field into a register, or a part of one, that is not in use?
  [[nodiscard]] bool only_looks(const Action& action) const;

 private:
  void note(const FlowRule& rule);
  unsigned used_ = 0;  ///< bit n: register n
};

/// Metadata and registers that a layout may use as tags: no rule of the set looks at them or sets
/// them, and no foreign action, of either side, names them.
class TagFields {
 public:
  TagFields(const RuleSet& rules, const Layout& layout);
  [[nodiscard]] bool is_tag(MatchField field) const;

 private:
  unsigned used_ = 0;  ///< registers by bit
  bool metadata_used_ = false;
};

}  // namespace greynic::verify
