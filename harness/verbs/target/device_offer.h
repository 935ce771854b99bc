#pragma once

/// What `greynic devices verbs:DEVICE` says of a device: factors, limits, levels and known facts.

#include "greynic/target/target.h"
#include "greynic/verbs/device.h"

namespace greynic::verbs {

/// Without name, description and environment, which are the target's.
[[nodiscard]] target::Info what_it_offers(const Device& device);

}  // namespace greynic::verbs
