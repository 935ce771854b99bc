#pragma once

/// Columns of 64-bit values as few bits, and back, to the last bit.
///
/// Integers: blocks of 128 values; each block takes differences or differences of differences, and
/// writes them in Rice codes whose parameter fits the block. Floating point: XOR with the value
/// before, its bits within a window. A column of decimals, such as 0.25, is one of integers and a
/// power of ten. A column that stands still is one value. docs/formats/series.md.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::series {

/// Appends the column to `out`. The way that is chosen stands in its first byte.
void pack(std::span<const std::uint64_t> values, bool floating, std::string& out);

/// Reads a column of `count` values from the front of `in` and removes it. kBadInput when it is
/// none.
[[nodiscard]] Result<std::vector<std::uint64_t>> unpack(std::string_view& in, std::size_t count);

/// Numbers of variable length, seven bits a byte.
void put_number(std::string& out, std::uint64_t value);
[[nodiscard]] Result<std::uint64_t> get_number(std::string_view& in);
void put_text(std::string& out, std::string_view text);
[[nodiscard]] Result<std::string> get_text(std::string_view& in, std::size_t most);

}  // namespace greynic::series
