#pragma once

/// Cubes against entries of a pool.

#include <cstdint>
#include <limits>
#include <vector>

#include "pool.h"

namespace greynic::verify {

[[nodiscard]] bool meets(const Pool& pool, std::uint32_t entry, const Cube& cube);
[[nodiscard]] bool contains(const Pool& pool, std::uint32_t entry, const Cube& cube);
/// Has the cube another bit than these somewhere? One of those bits goes to `looked_at`, unless one is there.
[[nodiscard]] bool differs(const Cube& cube, const std::uint64_t* value, const std::uint64_t* fixed,
                           CubeBits& looked_at);
/// Leaves of the cube what is in the entry; false, and the cube as it was, when nothing is.
bool narrow(const Pool& pool, std::uint32_t entry, Cube& cube);

/// Adds to `left` the parts of the cube that none of `takers` (entries of the pool) contains; the
/// whole of what is left when that takes too many steps. Comparisons are counted. False when there
/// are more than `most` parts: it ends there, and what it added is of no use.
bool subtract(const Pool& pool, const Cube& cube, const std::vector<std::uint32_t>& takers,
              std::vector<Cube>& left, std::uint64_t& comparisons,
              std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace greynic::verify
