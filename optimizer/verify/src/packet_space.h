#pragma once

/// The packet space of one comparison: only bits that some rule looks at, packed side by side.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::verify {

/// The bits of one region, without an allocation for as many as IPv4 rules look at.
using CubeBits = boost::container::small_vector<std::uint64_t, 4>;

/// A set of packets: each bit 0, 1 or free.
struct Cube {
  CubeBits value;
  CubeBits fixed;
};

class PacketSpace {
 public:
  /// Adds every bit that this match looks at. All matches first, then cubes.
  void widen(const Match& match);
  /// Numbers the bits; call once.
  void close();

  [[nodiscard]] std::size_t words() const { return (bits_.size() + 63) / 64; }
  /// The bits of each field that is looked at.
  [[nodiscard]] std::vector<CubeBits> fields() const;
  [[nodiscard]] Cube whole() const;
  [[nodiscard]] Cube cube(const Match& match) const;
  /// Some packet of the cube: free bits are zero.
  [[nodiscard]] Packet member(const Cube& cube) const;

 private:
  struct Bit {
    MatchField field;
    unsigned shift;
  };
  std::vector<U128> looked_at_ = std::vector<U128>(kMatchFieldCount, 0);
  std::vector<std::size_t> first_ = std::vector<std::size_t>(kMatchFieldCount, 0);
  std::vector<Bit> bits_;
};

}  // namespace greynic::verify
