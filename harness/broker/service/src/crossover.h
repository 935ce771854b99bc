#pragma once

/// From which length on it is cheaper to have memory registered than to copy it: measured on this
/// device when the broker starts, because it is 64 KiB on one RNIC and 4 MiB on another.

#include <cstdint>
#include <optional>

#include "greynic/broker/device.h"
#include "greynic/broker/local.h"

namespace greynic::broker {

/// Registers, deregisters and copies memory of two lengths, some milliseconds long.
[[nodiscard]] Result<local::Costs> measure_costs(Device& device);

/// From medians of registering `pages` and eight times as many, and of copying the former.
[[nodiscard]] local::Costs costs_of(std::uint64_t pages, double register_ns, double register_8_ns,
                                    double copy_ns);

/// As if registering cost what copying so many bytes does; nothing: it is never worth it.
[[nodiscard]] local::Costs costs_for_crossover(std::optional<std::uint64_t> bytes);

/// The shortest memory that is registered when it is sent once; nothing: none is.
[[nodiscard]] std::optional<std::uint64_t> crossover_bytes(const local::Costs& costs);

}  // namespace greynic::broker
