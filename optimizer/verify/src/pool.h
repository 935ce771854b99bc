#pragma once

/// Two first-match lists, flat in memory: the rules, and the tables of a layout.

#include <cstdint>
#include <map>
#include <vector>

#include "src/space/packet_space.h"

namespace greynic::verify {

inline constexpr std::uint32_t kMiss = 0xffffffff;  ///< the effect of matching nothing
inline constexpr std::uint32_t kNoJump = 0xffffffff;

/// One rule of either side; value and fixed bits lie in Pool::bits.
struct Entry {
  std::uint32_t effect = kMiss;
  std::uint32_t jump = kNoJump;  ///< table to go on in, else kNoJump
};

/// All entries of one comparison, and the lists that they form.
struct Pool {
  explicit Pool(std::size_t words_of_cubes) : words(words_of_cubes) {}
  explicit Pool(const PacketSpace& space) : words(space.words()), fields(space.fields()) {}
  std::size_t words;
  std::vector<CubeBits> fields;  ///< the bits of each header field
  std::vector<Entry> entries;
  std::vector<std::uint64_t> bits;   ///< per entry: value words, then fixed words
  std::vector<std::uint32_t> rules;  ///< one side, first wins
  /// The other side: by table its matchers in the order in which they are tried.
  std::map<std::uint32_t, std::vector<std::vector<std::uint32_t>>> matchers;

  std::uint32_t add(const Cube& cube, Entry entry) {
    bits.insert(bits.end(), cube.value.begin(), cube.value.end());
    bits.insert(bits.end(), cube.fixed.begin(), cube.fixed.end());
    entries.push_back(entry);
    return static_cast<std::uint32_t>(entries.size() - 1);
  }
  [[nodiscard]] const std::uint64_t* value(std::uint32_t entry) const {
    return &bits[entry * 2 * words];
  }
  [[nodiscard]] const std::uint64_t* fixed(std::uint32_t entry) const {
    return &bits[(entry * 2 + 1) * words];
  }
};

}  // namespace greynic::verify
