#pragma once

/// Which packets come to each place: at least those that do. Known are the bits that they have in
/// common, the place that all of them come by, and some entries that none of them is in.

#include <memory>
#include <optional>
#include <vector>

#include "places.h"
#include "src/ways/ways_back.h"
#include "step_finder.h"

namespace greynic::verify {

class Regions {
 public:
  Regions(const Pool& pool, const Places& places, std::uint64_t& comparisons);

  [[nodiscard]] bool reached(PlaceId place) const { return regions_[place].reached; }
  /// The bits that the packets of a place have in common.
  [[nodiscard]] const Cube& common(PlaceId place) const { return regions_[place].common; }
  /// All that lead to the place.
  [[nodiscard]] const std::vector<WayTo>& ways(PlaceId place) const { return ways_[place]; }
  /// Entries of the pool that all packets of a place missed on their way, of places with few: what
  /// a guard sends away is not asked for again behind it. Where several ways meet, an entry is
  /// kept of which no packet comes on any of them, whatever the reason on each.
  [[nodiscard]] const std::vector<std::uint32_t>& missed(PlaceId place) const {
    return *regions_[place].missed;
  }
  /// The packets of a place that are also in an entry; false when there are none.
  [[nodiscard]] bool meet(PlaceId place, std::uint32_t entry, Cube& both) const;

  /// As WaysBack.
  [[nodiscard]] bool none_comes(PlaceId place, const Cube& cube, Pieces pieces, std::uint64_t most,
                                std::optional<Cube>& some, std::uint64_t& comparisons) {
    return back_.none_comes(place, cube, pieces, most, some, comparisons);
  }

  /// All packets of the cube leave at one of the places that lie on every way here, by one step of it, or by none that
  /// leads here: seen at once, however many ways there are.
  [[nodiscard]] bool leaves_before(PlaceId place, const Cube& cube, std::uint64_t& comparisons);

  /// Adds to `coming` cubes that hold what comes to the place of a cube from which missed() was
  /// taken away; comparisons are counted.
  void come_to(PlaceId place, const Cube& cube, std::vector<Cube>& coming,
               std::uint64_t& comparisons);

  StepFinder& steps() { return steps_; }

 private:
  struct Region {
    bool reached = false;
    Cube common;
    PlaceId before = kEnd;  ///< the last place that all packets come by; kEnd at the start
    std::uint32_t depth = 0;
    std::uint32_t edges = 0;        ///< ways that lead here from one place or another
    const Step* by_jump = nullptr;  ///< of the first; null: by missing there
    std::shared_ptr<const std::vector<std::uint32_t>> missed;  ///< shared along a way
    bool misses_kept = false;  ///< `missed` has all steps of the place before
  };
  void come(PlaceId place, const Cube& common, PlaceId from, const Step* by_jump);
  void keep_in_mind(PlaceId place, std::uint64_t& comparisons);
  void miss_on_all_ways(PlaceId place, std::uint64_t& comparisons);
  bool gone(const WayTo& way, std::uint32_t entry, std::uint64_t& comparisons);
  /// False when it takes too long to follow.
  bool walk(PlaceId at, Cube cube, PlaceId to, std::vector<Cube>& arrived, std::uint64_t most,
            std::uint64_t& comparisons);
  /// What of a cube misses a place.
  bool miss(PlaceId place, const Cube& cube, std::vector<Cube>& missing,
            std::uint64_t& comparisons);

  const Pool& pool_;
  const Places& places_;
  std::vector<Region> regions_;
  std::vector<std::vector<WayTo>> ways_;  ///< that lead to each place
  StepFinder steps_;
  WaysBack back_;
};

}  // namespace greynic::verify
