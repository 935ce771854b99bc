#pragma once

/// What tells that a stored observation is no longer what was measured.

#include <cstdint>
#include <string>

#include "greynic/core/observation.h"
#include "greynic/results/store.h"

namespace greynic::results {

/// CRC-64 of everything in it, as 16 hexadecimal digits.
[[nodiscard]] std::string checksum_of(const Observation& observation);
/// Of what a run is told apart by: campaign, target, seed and settings.
[[nodiscard]] std::string checksum_of(const RunHeader& header);

}  // namespace greynic::results
