#pragma once

/// The packet space of one comparison: only bits that some rule looks at, packed side by side; of
/// ports, which rules look at as ranges and their prefixes, a code of their own.

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "src/space/port_code.h"

namespace greynic::verify {

/// The bits of one region, without an allocation for as many as IPv4 rules look at.
using CubeBits = boost::container::small_vector<std::uint64_t, 4>;

/// A set of packets: each bit 0, 1 or free.
struct Cube {
  CubeBits value;
  CubeBits fixed;
};

/// The ports that a match asks for; none where it looks at other bits than a prefix.
[[nodiscard]] std::optional<PortSpan> span_of(const Match& match, MatchField port);
[[nodiscard]] bool asks_for_spans(const Match& match);  ///< of both ports

class PacketSpace {
 public:
  /// Adds all that this match looks at. All matches first, then cubes.
  void widen(const Match& match);
  /// Numbers the bits; call once.
  void close();

  [[nodiscard]] std::size_t words() const { return (bits_.size() + 63) / 64; }
  /// The bits of each field that is looked at.
  [[nodiscard]] std::vector<CubeBits> fields() const;
  [[nodiscard]] Cube whole() const;
  /// The match as cubes that have no packet in common.
  [[nodiscard]] std::vector<Cube> cubes(const Match& match) const;
  /// Some packet of the cube: free bits are zero.
  [[nodiscard]] Packet member(const Cube& cube) const;

 private:
  struct Bit {
    MatchField field;
    unsigned shift;
  };
  struct Ports {
    MatchField field;
    PortCode code;
  };
  [[nodiscard]] const PortCode* code_of(MatchField field) const;
  void narrow(const FieldMatch& part, Cube& cube) const;

  bool coded_ = true;  ///< all matches ask for spans of ports
  std::vector<U128> looked_at_ = std::vector<U128>(kMatchFieldCount, 0);
  std::array<Ports, 2> ports_ = {Ports{MatchField::kL4SrcPort}, Ports{MatchField::kL4DstPort}};
  std::vector<std::size_t> first_ = std::vector<std::size_t>(kMatchFieldCount, 0);
  std::vector<Bit> bits_;
};

}  // namespace greynic::verify
