#pragma once

/// Payload that can be checked: the bytes of a slot depend on seed, lane and slot only, so a slot
/// is filled once and may be sent any number of times, even while an earlier send is under way.

#include <cstddef>
#include <cstdint>
#include <span>

namespace greynic::verbs {

void fill_payload(std::span<std::byte> bytes, std::uint64_t seed, std::uint32_t lane,
                  std::uint32_t slot);
[[nodiscard]] bool payload_matches(std::span<const std::byte> bytes, std::uint64_t seed,
                                   std::uint32_t lane, std::uint32_t slot);
/// Makes sure that old bytes cannot pass for new ones.
void spoil_payload(std::span<std::byte> bytes);

}  // namespace greynic::verbs
