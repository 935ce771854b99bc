#pragma once

/// What the line-based readers share: cutting text into lines and parts, and saying where a line is
/// wrong.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::rules {

/// A reader's way of saying no: what is wrong and what to do, without place.
using Complaint = std::string;

[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Parts between separators that stand outside all brackets; brackets must match, else empty.
[[nodiscard]] std::optional<std::vector<std::string_view>> split_outside_brackets(
    std::string_view text, char separator);

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
