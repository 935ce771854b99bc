#pragma once

/// The bytes of a region; docs/formats/region.md says the same in words.

#include <array>
#include <cstddef>
#include <cstdint>

namespace greynic::zero::layout {

inline constexpr std::size_t kLine = 64;
inline constexpr std::array<char, 8> kMagic = {'G', 'N', 'Z', 'E', 'R', 'O', '0', '1'};
inline constexpr std::uint64_t kMostDescriptors = 65536;
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
inline constexpr std::size_t kValuesPerLine = 7;  // the eighth word is the version

struct Header {
  std::array<char, 8> magic;
  std::uint64_t region_bytes;
  std::uint64_t descriptor_count;
  std::uint64_t table_offset;
  std::array<std::uint64_t, 4> reserved;
};
static_assert(sizeof(Header) == kLine);

/// A group (value_count > 0) is followed by the descriptors of its metrics (value_count == 0).
struct Descriptor {
  std::array<char, 48> name;  // ends with a zero byte
  std::array<char, 16> unit;
  std::uint64_t offset;       // of the group's first line
  std::uint64_t value_count;  // metrics of the group
  std::array<std::uint64_t, 6> reserved;
};
static_assert(sizeof(Descriptor) == 2 * kLine);

/// Lines that a group of so many metrics takes; the time of writing is its first value.
constexpr std::uint64_t lines_of(std::uint64_t metrics) {
  return (metrics + 1 + kValuesPerLine - 1) / kValuesPerLine;
}

struct Line {
  std::uint64_t version;
  std::array<std::uint64_t, kValuesPerLine> values;
};
static_assert(sizeof(Line) == kLine);

}  // namespace greynic::zero::layout
