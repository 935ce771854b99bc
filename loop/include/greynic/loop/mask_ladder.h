#pragma once

/// Where a law is asked what a layout gains, it has to know many masks: rules in their order make packets try hundreds,
/// and a campaign has tens. So the device is asked first for even numbers of masks at that hop, as far up as
/// those rules go: under the traffic that will be judged, and for one small packet, which takes nothing but its walk.
/// From the two follows how many packets walk at once.
///
/// Example: of rules with up to 500 matchers a packet, at a baseline of 64 KiB SENDs: 4, 16, 64, 256 and 500 masks, each for
/// these and for SENDs of 64 bytes.

#include <vector>

#include "greynic/core/configuration.h"

namespace greynic::loop {

/// `at` with numbers of masks at `hop`, each four times the one before, the last `most`, or the device's `limit` (0:
/// none) where that is less; each followed by the same for 64 bytes, where messages have a size. None where `at` says
/// nothing of masks there, so that nobody can set them.
[[nodiscard]] std::vector<Configuration> mask_ladder(const Configuration& at, Hop hop, double most,
                                                     double limit);

}  // namespace greynic::loop
