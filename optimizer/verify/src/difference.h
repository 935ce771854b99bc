#pragma once

/// The search for a packet that two first-match lists treat differently.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "greynic/core/result.h"
#include "packet_space.h"

namespace greynic::verify {

inline constexpr std::uint32_t kMiss = 0xffffffff;  ///< the effect of matching nothing
inline constexpr std::uint32_t kNoJump = 0xffffffff;
inline constexpr int kMostJumps = 64;  ///< as core's look_up; a longer chain is a loop

/// One rule of either side, flat in memory: value and fixed bits lie in Pool::bits.
struct Entry {
  std::uint32_t effect = kMiss;
  std::uint32_t jump = kNoJump;  ///< table to go on in, else kNoJump
};

/// All entries of one comparison, and the lists that they form.
struct Pool {
  explicit Pool(std::size_t words_of_space) : words(words_of_space) {}
  std::size_t words;
  std::vector<Entry> entries;
  std::vector<std::uint64_t> bits;   ///< per entry: value words, then fixed words
  std::vector<std::uint32_t> rules;  ///< one side, first wins
  /// The other side: by table its matchers in the order in which they are tried, and all entries of
  /// these in one list.
  std::map<std::uint32_t, std::vector<std::vector<std::uint32_t>>> matchers;
  std::map<std::uint32_t, std::vector<std::uint32_t>> tables;

  std::uint32_t add(const Cube& cube, Entry entry);
  [[nodiscard]] const std::uint64_t* value(std::uint32_t entry) const {
    return &bits[entry * 2 * words];
  }
  [[nodiscard]] const std::uint64_t* fixed(std::uint32_t entry) const {
    return &bits[(entry * 2 + 1) * words];
  }
};

struct Difference {
  Cube where;              ///< every packet in it shows the difference
  std::uint32_t by_rules;  ///< effects
  std::uint32_t by_layout;
};

/// What a search may spend. A comparison is one of two rules, or of a rule and a region.
struct SearchLimits {
  std::uint64_t regions_left;
  std::uint64_t comparisons_left;
  std::function<void(double)> progress;
};

/// Empty when the lists treat every packet of the region alike. kTooBig when the regions or the comparisons are
/// used up, kUnsupported when jumps form a loop.
[[nodiscard]] Result<std::optional<Difference>> find_difference(const Pool& pool,
                                                                std::uint32_t first_table,
                                                                const Cube& region,
                                                                SearchLimits& limits);

}  // namespace greynic::verify
