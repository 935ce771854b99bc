#pragma once

/// Payload that can be checked: the bytes of a slot depend on seed, lane and slot only, so a slot
/// is filled once and may be sent any number of times, even while an earlier send is under way.

#include <cstddef>
#include <cstdint>
#include <span>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {

void fill_payload(std::span<std::byte> bytes, std::uint64_t seed, std::uint32_t lane,
                  std::uint32_t slot);
[[nodiscard]] bool payload_matches(std::span<const std::byte> bytes, std::uint64_t seed,
                                   std::uint32_t lane, std::uint32_t slot);
/// Overwrites bytes so that they cannot pass for new ones.
void spoil_payload(std::span<std::byte> bytes);

/// READ and atomics: whether message number `message` of a lane fetched what it should have. READ's
/// bytes are spoiled then, for the next message that lands there.
[[nodiscard]] bool fetched_well(Endpoint& endpoint, std::uint32_t lane, std::uint64_t message,
                                std::uint32_t bytes);

}  // namespace greynic::verbs
