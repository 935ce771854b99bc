#pragma once

/// Ways to know more of a packet: cubes that together hold all packets.

#include <vector>

#include "src/space/packet_space.h"

namespace greynic::verify {

/// `asked`: what is asked of some bits, no two alike, each of some bit. In each of the cubes at most
/// half of it is undecided. Packets for which all of it is decided, and alike, may be in one cube of
/// several that they fill. Where bits are asked for one by one, not as prefixes, less may be decided.
[[nodiscard]] std::vector<Cube> split(const std::vector<Cube>& asked);

}  // namespace greynic::verify
