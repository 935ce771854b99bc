#include "src/ways/ways_back.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "src/cover.h"
#include "src/regions.h"

namespace greynic::verify {
namespace {

constexpr std::size_t kManyWays = 16;          // to a place, that pay an index
constexpr std::size_t kFewWays = 4;            // of them from one place
constexpr std::size_t kMostKnown = 2'000'000;  // cubes, at all places
constexpr std::size_t kMostStepsMet = 8192;    // of a place, by one cube
constexpr std::size_t kFewParts = 64;          // of a cube, that a place of one mask tells apart
constexpr std::size_t kMostPiecesLeft = 64;    // of a cube, by a place

void add_bits(CubeBits& to, const std::uint64_t* bits, const CubeBits& of) {
  for (std::size_t w = 0; w < to.size(); ++w) to[w] |= bits[w] & of[w];
}

}  // namespace

bool WaysBack::none_comes(PlaceId place, const Cube& cube, Pieces pieces, std::uint64_t most,
                          std::optional<Cube>& some, std::uint64_t& comparisons) {
  some.reset();
  open_.clear();
  most_pieces_ = pieces == Pieces::kOne ? 1 : kMostPiecesLeft;
  most_parts_ = pieces == Pieces::kOne ? kFewParts : std::numeric_limits<std::size_t>::max();
  const CubeBits nothing(pool_.words, 0);
  CubeBits looked_at(pool_.words, 0);
  Came came = ask(place, Cube(cube), nothing, looked_at, comparisons);
  while (came != Came::kSome && !open_.empty()) {
    if (comparisons > most) return false;
    Asked& asked = open_.back();
    if (!asked.pieces.empty()) {
      came = follow_piece(asked, comparisons);
    } else if (!asked.ways.empty()) {
      const WayTo& way = regions_.ways(asked.at)[asked.ways.back()];
      asked.ways.pop_back();
      came = follow(way, asked, comparisons);
    } else {
      answered(comparisons);
    }
  }
  if (came == Came::kSome) some = open_.back().cube;
  return came != Came::kSome;
}

/// What of the cube goes this way.
WaysBack::Came WaysBack::follow(const WayTo& way, Asked& asked, std::uint64_t& comparisons) {
  ++comparisons;
  if (way.by_jump == nullptr) {
    if (take(way.from, asked, comparisons)) return Came::kNone;
    return follow_piece(asked, comparisons);
  }
  const std::uint32_t entry = way.by_jump->entry;
  const std::uint64_t* const fixed = pool_.fixed(entry);
  if (differs(asked.cube, pool_.value(entry), fixed, asked.looked_at)) return Came::kNone;
  Cube part = asked.cube;
  narrow(pool_, entry, part);
  return ask(way.from, std::move(part), CubeBits(fixed, fixed + pool_.words), asked.looked_at,
             comparisons);
}

WaysBack::Came WaysBack::follow_piece(Asked& asked, std::uint64_t& comparisons) {
  Cube piece = std::move(asked.pieces.back());
  asked.pieces.pop_back();
  CubeBits given = piece.fixed;
  for (std::size_t w = 0; w < pool_.words; ++w) given[w] &= ~asked.cube.fixed[w];
  return ask(asked.from, std::move(piece), given, asked.looked_at, comparisons);
}

/// Does the place take all of the cube? Else its pieces are what misses, or more.
bool WaysBack::take(PlaceId from, Asked& asked, std::uint64_t& comparisons) {
  const Cube& cube = asked.cube;
  asked.from = from;
  const Step* const step = steps_.containing(from, cube, comparisons);
  if (step != nullptr) {
    add_bits(asked.looked_at, pool_.fixed(step->entry), cube.fixed);
    return true;
  }
  const std::size_t parts = places_[from].masks.size() == 1 ? places_.parts(from, cube) : 0;
  std::vector<std::uint32_t> met;
  if (parts <= most_parts_ || parts <= places_[from].steps.size()) {
    steps_.meeting(from, cube, met, comparisons);
  }
  const bool together = places_.take_all(from, cube, met.size());
  for (std::uint32_t& number : met) number = places_[from].steps[number].entry;
  comparisons += met.size();
  if (!together && (met.empty() || met.size() > kMostStepsMet ||
                    !subtract(pool_, cube, met, asked.pieces, comparisons, most_pieces_))) {
    asked.pieces.assign(1, cube);
    return false;
  }
  for (const std::uint32_t entry : met) add_bits(asked.looked_at, pool_.fixed(entry), cube.fixed);
  return asked.pieces.empty();
}

/// Goes on asking at a place, unless that is known. `looked_at`: of where it was asked before, to which what shows it
/// goes.
WaysBack::Came WaysBack::ask(PlaceId at, Cube&& cube, const CubeBits& given, CubeBits& looked_at,
                             std::uint64_t& comparisons) {
  const Cube& common = regions_.common(at);
  CubeBits differ = given;
  const auto add_to = [&](const CubeBits& bits) {
    for (std::size_t w = 0; w < pool_.words; ++w) looked_at[w] |= bits[w] & ~given[w];
  };
  ++comparisons;
  if (differs(cube, common.value.data(), common.fixed.data(), differ)) {
    add_to(differ);
    return Came::kNone;
  }
  for (std::size_t w = 0; w < pool_.words; ++w) {
    cube.value[w] |= common.value[w];
    cube.fixed[w] |= common.fixed[w];
  }
  CubeBits bits(pool_.words, 0);
  if (is_known(at, cube, bits, comparisons)) {
    add_to(bits);
    return Came::kNone;
  }
  open_.push_back({at, std::move(cube), {}, CubeBits(pool_.words, 0), given});
  if (at == places_.start()) return Came::kSome;
  list_ways(open_.back(), comparisons);
  return Came::kOpen;
}

/// Is it known that none of a cube comes to the place? Then the bits that show it go to `looked_at`.
bool WaysBack::is_known(PlaceId at, const Cube& cube, CubeBits& looked_at,
                        std::uint64_t& comparisons) {
  const auto known = known_.find(at);
  if (known == known_.end()) return false;
  const CubeBits* const bits = known->second.containing(cube, comparisons);
  if (bits == nullptr) return false;
  for (std::size_t w = 0; w < pool_.words; ++w) looked_at[w] |= (*bits)[w];
  return true;
}

/// Ways that packets of the cube may come by. Many of one place are asked about at once: where none of the cube comes to
/// it, no bits need to tell which of its jumps are those of the cube.
void WaysBack::list_ways(Asked& asked, std::uint64_t& comparisons) {
  const std::vector<WayTo>& ways = regions_.ways(asked.at);
  if (ways.size() <= kManyWays) {
    for (std::uint32_t way = 0; way < ways.size(); ++way) asked.ways.push_back(way);
    return;
  }
  auto& bundles = bundles_[asked.at];
  if (bundles.empty()) bundle(ways, bundles, comparisons);
  std::vector<std::uint32_t> met;
  for (const Bundle& bundle : bundles) {
    ++comparisons;
    if (bundle.from != kEnd && is_known(bundle.from, asked.cube, asked.looked_at, comparisons)) {
      continue;
    }
    bundle.index->index.meeting(asked.cube, met, asked.looked_at, comparisons);
    for (const std::uint32_t way : met) asked.ways.push_back(bundle.ways[way]);
  }
}

void WaysBack::bundle(const std::vector<WayTo>& ways, std::vector<Bundle>& bundles,
                      std::uint64_t& comparisons) {
  std::map<PlaceId, std::vector<std::uint32_t>> by_place;
  for (std::uint32_t way = 0; way < ways.size(); ++way) by_place[ways[way].from].push_back(way);
  bundles.push_back({kEnd, {}, nullptr});  // of places with few
  for (auto& [from, numbers] : by_place) {
    if (numbers.size() > kFewWays) {
      bundles.push_back({from, std::move(numbers), nullptr});
    } else {
      auto& few = bundles.front().ways;
      few.insert(few.end(), numbers.begin(), numbers.end());
    }
  }
  for (Bundle& bundle : bundles) {
    std::vector<std::uint32_t> cubes;
    for (const std::uint32_t way : bundle.ways) {
      Cube cube = regions_.common(ways[way].from);
      if (ways[way].by_jump != nullptr) narrow(pool_, ways[way].by_jump->entry, cube);
      cubes.push_back(cubes_.add(cube, {}));
    }
    bundle.index = std::make_unique<FullIndex>(cubes_, std::move(cubes));
  }
  comparisons += ways.size();
}

/// None of the cube comes to the place that was asked last.
void WaysBack::answered(std::uint64_t& comparisons) {
  Asked asked = std::move(open_.back());
  open_.pop_back();
  const CubeBits& common = regions_.common(asked.at).fixed;
  for (std::size_t w = 0; w < pool_.words; ++w) asked.looked_at[w] &= ~common[w];
  const auto& steps = places_[asked.at].steps;
  const bool again = open_.empty() || regions_.ways(asked.at).size() > 1 ||
                     (steps.size() > 1 && steps.front().jumps);
  if (again && known_count_ < kMostKnown) {
    ++known_count_;
    known_.try_emplace(asked.at, pool_.words).first->second.add(asked.cube, asked.looked_at);
    ++comparisons;
  }
  if (open_.empty()) return;
  CubeBits& looked_at = open_.back().looked_at;
  for (std::size_t w = 0; w < pool_.words; ++w) {
    looked_at[w] |= asked.looked_at[w] & ~asked.given[w];
  }
}

}  // namespace greynic::verify
