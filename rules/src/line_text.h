#pragma once

/// What the line-based readers share: cutting text, reading numbers, expanding ranges, saying where
/// a line is wrong.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::rules {

/// A value under a mask; bits of the value outside the mask are zero.
struct Masked {
  U128 value = 0;
  U128 bits = 0;
  bool operator==(const Masked&) const = default;
};

/// A reader's way of saying no: what is wrong and what to do, without place.
using Complaint = std::string;

[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Parts between separators that stand outside all brackets; brackets must match, else empty.
[[nodiscard]] std::optional<std::vector<std::string_view>> split_outside_brackets(
    std::string_view text, char separator);

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

/// `text` cut for a message: at most 60 characters, unprintable ones replaced.
[[nodiscard]] std::string shown(std::string_view text);

/// kBadInput "source: line N: complaint", with N counted from 1 as editors do.
[[nodiscard]] tl::unexpected<Error> bad_line(const std::string& source, std::size_t line_index,
                                             const Complaint& complaint);

/// Lines without their end ("\n" or "\r\n"); the last one may lack it.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// The action that stands for "input line N decides" in formats that have no actions: the packet
/// mark is set to the line's 0-based number, which rte_flow, tc and Open vSwitch can all do.
[[nodiscard]] Action mark_line(std::uint32_t line);

}  // namespace greynic::rules
