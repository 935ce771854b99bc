#include "common/action_limits.h"

#include <fmt/core.h>

namespace greynic::flows {

std::optional<std::string> too_large(const Action& action) {
  const auto beyond = [&](unsigned bits) { return action.number >> bits != 0; };
  switch (action.kind) {
    case ActionKind::kPushVlan:
      if (beyond(12)) return "a VLAN id has 12 bits";
      break;
    case ActionKind::kVxlanEncap:
      if (beyond(24)) return "a VXLAN number has 24 bits";
      break;
    case ActionKind::kJump:
      if (beyond(32)) return "a table number has 32 bits";
      break;
    case ActionKind::kMeter:
      if (beyond(32)) return "a meter number has 32 bits";
      break;
    case ActionKind::kSetField:
      if (((action.value | action.bits) & ~full_mask(action.field)) != 0) {
        return fmt::format("{} has {} bits", info(action.field).name,
                           info(action.field).width_bits);
      }
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace greynic::flows
