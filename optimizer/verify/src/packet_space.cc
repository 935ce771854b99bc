#include "packet_space.h"

namespace greynic::verify {

void PacketSpace::widen(const Match& match) {
  for (const FieldMatch& part : match.fields()) {
    looked_at_[static_cast<std::size_t>(part.field)] |= part.bits;
  }
}

void PacketSpace::close() {
  for (std::size_t field = 0; field < kMatchFieldCount; ++field) {
    first_[field] = bits_.size();
    // From the highest bit down: prefixes then occupy columns that lie together.
    for (unsigned shift = 128; shift-- > 0;) {
      if ((looked_at_[field] >> shift & 1) != 0) {
        bits_.push_back({static_cast<MatchField>(field), shift});
      }
    }
  }
  if (bits_.empty()) bits_.push_back({MatchField::kInPort, 0});  // only rules that match all
}

std::vector<CubeBits> PacketSpace::fields() const {
  std::vector<CubeBits> result;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    if (i == 0 || bits_[i].field != bits_[i - 1].field) result.emplace_back(words(), 0);
    result.back()[i / 64] |= std::uint64_t{1} << i % 64;
  }
  return result;
}

Cube PacketSpace::whole() const { return {CubeBits(words(), 0), CubeBits(words(), 0)}; }

Cube PacketSpace::cube(const Match& match) const {
  Cube result = whole();
  for (const FieldMatch& part : match.fields()) {
    for (std::size_t i = first_[static_cast<std::size_t>(part.field)];
         i < bits_.size() && bits_[i].field == part.field; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i % 64;
      if ((part.bits >> bits_[i].shift & 1) == 0) continue;
      result.fixed[i / 64] |= bit;
      if ((part.value >> bits_[i].shift & 1) != 0) result.value[i / 64] |= bit;
    }
  }
  return result;
}

Packet PacketSpace::member(const Cube& cube) const {
  Packet packet;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    if ((cube.value[i / 64] >> i % 64 & 1) == 0) continue;
    packet.set(bits_[i].field, packet.value(bits_[i].field) | U128{1} << bits_[i].shift);
  }
  return packet;
}

}  // namespace greynic::verify
