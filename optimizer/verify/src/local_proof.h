#pragma once

/// A proof that a layout does what the rules do, place by place (places.h), each place from what it
/// tries and where it leads.
///
/// Of each place a claim is made: what is tried from there does to the packets that come to it what
/// the rules of a set S do, in their order. S holds the witnesses of the place's entries, rules of
/// the same effect that contain the entry's packets, and the sets of the places that it leads to.
/// The claim holds for a packet when
///   - an entry that does not jump takes it, and the first rule of S that takes it does the same: no
///     rule of another effect before the witness meets the entry, where nothing was tried before
///     that takes what they have in common;
///   - an entry that jumps takes it, or it misses, and the rules of S that are not in the set of the
///     place where it goes on have it not: they do not meet the entry, or rules of that set take it
///     from them, or do the same to it.
/// Last, rules in the set of no place must change nothing. A shared table is one place, and its
/// claim is shown once, whoever jumps there; what a rule is asked for are entries that it meets, not
/// pieces of the packet space.
///
/// The claims are about each packet for itself. So where something cannot be shown for a cube of
/// packets, the sides are alike for every packet outside of it, and the cube is left to be looked
/// at: the proof is exact though regions are rounded up and witnesses are guessed.

#include <functional>
#include <vector>

#include "places.h"

namespace greynic::verify {

/// What the proof leaves.
struct LeftToShow {
  std::vector<Cube> cubes;
  bool all = false;  ///< both sides are alike outside of the cubes; else there was too much to do
};

/// The comparisons are counted, and no more than `most` are made.
[[nodiscard]] LeftToShow prove_locally(const Pool& pool, const Places& places, std::uint64_t most,
                                       std::uint64_t& comparisons,
                                       const std::function<void(double)>& progress);

}  // namespace greynic::verify
