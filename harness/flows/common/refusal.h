#pragma once

/// kUnsupported in the same words for all interfaces: "tc flower cannot do meter:1: this driver makes no policers".

#include <fmt/core.h>

#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

/// What an interface is not able to do or to match.
struct Refusal {
  std::string_view interface;

  [[nodiscard]] tl::unexpected<Error> of(const Action& action, std::string_view why) const {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} cannot do {}: {}", interface, to_string(action), why));
  }
  [[nodiscard]] tl::unexpected<Error> of(MatchField field, std::string_view why) const {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} cannot match {}: {}", interface, info(field).name, why));
  }
};
inline constexpr Refusal kOvsRefusal{"Open vSwitch"}, kRteRefusal{"rte_flow"},
    kTcRefusal{"tc flower"};

}  // namespace greynic::flows
