#pragma once

/// Sets of packets that a value under a mask describes, packed into columns (src/ternary.h) side by
/// side, so that two are compared within a cache line.

#include <array>
#include <cstddef>

#include "src/ternary.h"

namespace greynic::optimizer::live {

inline constexpr std::size_t kMostWords = 16;

struct Part {
  Word value = 0;  ///< no bit outside the mask
  Word mask = 0;
};

/// The first `words` parts are used; all cubes of one layout have equally many.
using Cube = std::array<Part, kMostWords>;

class CubeSpace {
 public:
  explicit CubeSpace(Columns columns) : columns_(std::move(columns)) {}

  [[nodiscard]] std::size_t words() const { return columns_.words(); }
  [[nodiscard]] Cube cube(const Match& match) const {
    std::array<Word, kMostWords> value{};
    std::array<Word, kMostWords> mask{};
    columns_.pack(match, value.data(), mask.data());
    Cube made{};
    for (std::size_t w = 0; w < words(); ++w) made[w] = {value[w], mask[w]};
    return made;
  }
  /// One packet alone.
  [[nodiscard]] Cube point(const Packet& packet) const {
    std::array<Word, kMostWords> value{};
    columns_.pack(packet, value.data());
    Cube made{};
    for (std::size_t w = 0; w < words(); ++w) made[w] = {value[w], ~Word{0}};
    return made;
  }
  [[nodiscard]] Match match(const Cube& cube) const {
    std::array<Word, kMostWords> value{};
    std::array<Word, kMostWords> mask{};
    for (std::size_t w = 0; w < words(); ++w) {
      value[w] = cube[w].value;
      mask[w] = cube[w].mask;
    }
    return columns_.unpack(value.data(), mask.data());
  }

  [[nodiscard]] bool overlap(const Cube& a, const Cube& b) const {
    for (std::size_t w = 0; w < words(); ++w) {
      if (((a[w].value ^ b[w].value) & a[w].mask & b[w].mask) != 0) return false;
    }
    return true;
  }
  /// Every packet of b is one of a.
  [[nodiscard]] bool contains(const Cube& a, const Cube& b) const {
    for (std::size_t w = 0; w < words(); ++w) {
      if (((a[w].mask & ~b[w].mask) | ((a[w].value ^ b[w].value) & a[w].mask)) != 0) return false;
    }
    return true;
  }
  [[nodiscard]] bool same_mask(const Cube& a, const Cube& b) const {
    for (std::size_t w = 0; w < words(); ++w) {
      if (a[w].mask != b[w].mask) return false;
    }
    return true;
  }
  /// The packets of both; they must overlap.
  [[nodiscard]] Cube meet(const Cube& a, const Cube& b) const {
    Cube made{};
    for (std::size_t w = 0; w < words(); ++w) {
      made[w] = {a[w].value | b[w].value, a[w].mask | b[w].mask};
    }
    return made;
  }
  /// As much of the cube as the mask looks at.
  [[nodiscard]] Cube under(const Cube& mask, const Cube& cube) const {
    Cube made{};
    for (std::size_t w = 0; w < words(); ++w) {
      made[w] = {cube[w].value & mask[w].mask, cube[w].mask & mask[w].mask};
    }
    return made;
  }
  /// The smallest cube around both.
  [[nodiscard]] Cube around(const Cube& a, const Cube& b) const {
    Cube made{};
    for (std::size_t w = 0; w < words(); ++w) {
      made[w].mask = a[w].mask & b[w].mask & ~(a[w].value ^ b[w].value);
      made[w].value = a[w].value & made[w].mask;
    }
    return made;
  }

 private:
  Columns columns_;
};

}  // namespace greynic::optimizer::live
