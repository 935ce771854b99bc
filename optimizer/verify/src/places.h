#pragma once

/// The tables of a layout as places. A place is a matcher of a table, with all that is tried after
/// it. Places that try the same are one, however many tables hold them, and a matcher that takes
/// every packet to a table is that table. So each place has one next place, and the places form a
/// tree whose root is the end, where nothing is left to try. A jump leads to a place too: from there
/// and from the next place the ways meet again, at the latest at the end.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pool.h"

namespace greynic::verify {

using PlaceId = std::uint32_t;
inline constexpr PlaceId kEnd = 0;  ///< nothing is left to try: a miss

/// An entry of a place; a jump leads to `to`.
struct Step {
  std::uint32_t entry;  ///< of the pool
  bool jumps;
  PlaceId to;
};

struct Place {
  std::vector<Step> steps;  ///< no two alike; of several masks where ranges are written out
  PlaceId next = kEnd;
  std::uint32_t height = 0;          ///< places from here to the end
  std::vector<std::uint32_t> slots;  ///< of steps, by the hash of their values
  std::vector<CubeBits> masks;       ///< of the steps, each once
  CubeBits looked_at;                ///< all of their bits
};

class Places {
 public:
  /// The jumps of the pool's tables must form no loop.
  Places(const Pool& pool, std::uint32_t first_table);

  [[nodiscard]] PlaceId start() const { return start_; }
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  /// Ways lead from greater numbers to smaller ones.
  [[nodiscard]] const Place& operator[](PlaceId id) const { return places_[id]; }
  /// The most jumps that can follow one another.
  [[nodiscard]] int most_jumps() const { return most_jumps_; }
  /// The bits that a place other than the end looks at.
  [[nodiscard]] const std::uint64_t* mask(PlaceId id) const { return places_[id].looked_at.data(); }
  /// The step that a packet with these bits hits; null when it misses.
  [[nodiscard]] const Step* find(PlaceId id, const std::uint64_t* value) const;
  /// What is done to a packet with these bits; kMiss when it misses.
  [[nodiscard]] std::uint32_t effect_of(const std::uint64_t* value) const;
  /// Does the cube fix all bits that the place looks at?
  [[nodiscard]] bool looks_at(PlaceId id, const Cube& cube) const;
  /// Packets of the cube that the place tells apart, of one mask; many are all the same.
  [[nodiscard]] std::size_t parts(PlaceId id, const Cube& cube) const;
  /// Do so many steps, which the cube meets, take all of its packets? Steps of one mask have none in common.
  [[nodiscard]] bool take_all(PlaceId id, const Cube& cube, std::size_t steps) const;
  /// Where two ways meet again.
  [[nodiscard]] PlaceId meeting(PlaceId a, PlaceId b) const;

 private:
  struct Start {
    PlaceId place;
    int jumps;
  };
  Start start_of(std::uint32_t table);
  PlaceId place_of(const std::vector<std::uint32_t>& matcher, PlaceId next, int& jumps);
  void add_slots(Place& place) const;

  const Pool& pool_;
  std::vector<Place> places_;
  std::unordered_map<std::string, PlaceId> by_text_;
  std::map<std::uint32_t, Start> known_;  ///< by table
  PlaceId start_ = kEnd;
  int most_jumps_ = 0;
};

}  // namespace greynic::verify
