#pragma once

#include <cstdint>
#include <vector>

#include "src/hashed_numbers.h"
#include "src/pool.h"

namespace greynic::verify {

/// Cubes that have no packet at a place, by the bits that they fix.
class KnownCubes {
 public:
  explicit KnownCubes(std::size_t words) : words_(words) {}
  /// The fixed bits of one that contains the cube; null when none does. Each kind looked at is counted.
  const CubeBits* containing(const Cube& cube, std::uint64_t& comparisons);
  /// The cube with these of its bits fixed; `bits` are among them.
  void add(const Cube& cube, const CubeBits& bits);

 private:
  struct Kind {
    CubeBits fixed;
    std::vector<std::uint64_t> values;
    HashedNumbers numbers;
  };
  [[nodiscard]] std::uint64_t hash_of(const Cube& cube, const Kind& kind) const;
  [[nodiscard]] bool same(const Cube& cube, const Kind& kind, std::uint32_t number) const;

  std::size_t words_;
  std::vector<Kind> kinds_;  ///< those that were of use last come first
};

}  // namespace greynic::verify
