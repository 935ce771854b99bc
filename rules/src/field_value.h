#pragma once

/// Values of match fields as text writes them: numbers, addresses, masks, prefixes, ranges.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::rules {

/// A value under a mask; bits of the value outside the mask are zero.
struct Masked {
  U128 value = 0;
  U128 bits = 0;
  bool operator==(const Masked&) const = default;
};

/// Decimal or 0x hexadecimal.
[[nodiscard]] std::optional<std::uint64_t> number_from(std::string_view text);

/// "value", "value/mask" or, for addresses, "address/length", as any field may be written. Bits
/// outside the mask are cut off, as Open vSwitch and tc do when they read such text.
[[nodiscard]] std::optional<Masked> masked_from(MatchField field, std::string_view text);

/// The bits of a prefix of `length` in a field of this width; length at most the width.
[[nodiscard]] U128 prefix_bits(MatchField field, unsigned length);

/// The fewest prefixes that together are exactly low..high; both in a field of `width` bits.
[[nodiscard]] std::vector<Masked> prefixes_of_range(std::uint32_t low, std::uint32_t high,
                                                    unsigned width);

}  // namespace greynic::rules
