#pragma once

/// Whether packets of a cube come to a place, seen by going back over all ways that lead there.
///
/// What shows that none comes looks at few bits of the cube: one in which it differs from an entry
/// that jumps, those of an entry that takes it. Packets that have these bits do not come, whatever
/// their others are. So they are kept at the place, and answer later questions about other cubes.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "src/places.h"
#include "src/rule_index.h"
#include "src/step_finder.h"
#include "src/ways/known_cubes.h"

namespace greynic::verify {

/// A way that leads to a place.
struct WayTo {
  PlaceId from;
  const Step* by_jump;  ///< null: by missing there
};

class Regions;

/// Where a place leaves several pieces of a cube: each goes on, or the whole cube does, which is no less.
enum class Pieces : std::uint8_t { kOne, kAll };

class WaysBack {
 public:
  /// All references must outlive it; the regions must be complete when it is asked.
  WaysBack(const Pool& pool, const Places& places, const Regions& regions, StepFinder& steps)
      : pool_(pool), places_(places), regions_(regions), steps_(steps), cubes_(pool.words) {}

  /// No packet of the cube comes to the place; else `some` are packets that seem to come, none where that takes more
  /// than `most` comparisons. They are counted.
  [[nodiscard]] bool none_comes(PlaceId place, const Cube& cube, Pieces pieces, std::uint64_t most,
                                std::optional<Cube>& some, std::uint64_t& comparisons);

 private:
  /// A place where it is asked whether any of a cube comes.
  struct Asked {
    PlaceId at;
    Cube cube;
    std::vector<std::uint32_t> ways;  ///< still to be followed
    CubeBits looked_at;               ///< of the cube, by what shows that none comes
    CubeBits given;       ///< of the cube, by the way from here to the place asked about before
    PlaceId from = kEnd;  ///< where its pieces miss
    std::vector<Cube> pieces;  ///< still to be followed
  };
  /// Ways from one place to another; or all from places with few.
  struct Bundle {
    PlaceId from;  ///< kEnd: several
    std::vector<std::uint32_t> ways;
    std::unique_ptr<FullIndex> index;
  };
  enum class Came : std::uint8_t { kNone, kSome, kOpen };

  Came ask(PlaceId at, Cube&& cube, const CubeBits& given, CubeBits& looked_at,
           std::uint64_t& comparisons);
  bool is_known(PlaceId at, const Cube& cube, CubeBits& looked_at, std::uint64_t& comparisons);
  void list_ways(Asked& asked, std::uint64_t& comparisons);
  void bundle(const std::vector<WayTo>& ways, std::vector<Bundle>& bundles,
              std::uint64_t& comparisons);
  Came follow(const WayTo& way, Asked& asked, std::uint64_t& comparisons);
  Came follow_piece(Asked& asked, std::uint64_t& comparisons);
  bool take(PlaceId from, Asked& asked, std::uint64_t& comparisons);
  void answered(std::uint64_t& comparisons);

  const Pool& pool_;
  const Places& places_;
  const Regions& regions_;
  StepFinder& steps_;
  Pool cubes_;  ///< of ways to places to which many lead
  std::unordered_map<PlaceId, std::vector<Bundle>> bundles_;  ///< of these
  std::unordered_map<PlaceId, KnownCubes> known_;
  std::size_t known_count_ = 0;
  std::vector<Asked> open_;
  std::size_t most_pieces_ = 1;
  std::size_t most_parts_ = 1;
};

}  // namespace greynic::verify
