#pragma once

/// Packets that do not all try as many masks. They leave the eSwitch as they are through, but what follows takes them in
/// their order: the wire, the receiver's memory, a closed loop. So a packet that tries many holds up those behind it, and
/// the mean says too little. Packets are followed one by one through the windows of the law.

#include "greynic/model/model.h"
#include "pipeline/parameters.h"

namespace greynic::model::pipeline {

/// `values` in the fitted scale; `setting` is what is asked of the law, whatever its masks at `hop` are.
[[nodiscard]] AlikeMasks masks_alike(const Values& values, const Setting& setting, Hop hop,
                                     const MaskShares& shares);

}  // namespace greynic::model::pipeline
