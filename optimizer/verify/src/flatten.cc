#include "flatten.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace greynic::verify {
namespace {

using PlaceId = std::uint32_t;
using Regions = std::vector<Cube>;
constexpr PlaceId kEnd = 0;                // nothing is left to try: a miss
constexpr std::uint64_t kCostOfCube = 20;  // comparisons that making one is worth

/// A rule of a place; a jump leads to `to`.
struct Step {
  const Cube* cube;
  std::uint32_t effect;
  bool jumps;
  PlaceId to;
};

struct Place {
  std::vector<Step> steps;
  PlaceId next = kEnd;
  std::uint32_t height = 0;  ///< places from here to the end
};

bool takes_all(const Cube& cube) {
  return std::all_of(cube.fixed.begin(), cube.fixed.end(), [](std::uint64_t w) { return w == 0; });
}

template <typename T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The places of all tables, equal ones as one.
class Places {
 public:
  explicit Places(const TableArcs& tables) : tables_(tables), places_(1) {}

  /// The place where a table begins. Tables are entered depth first; one that is still open when
  /// it is entered again closes a loop.
  Result<PlaceId> start_of(std::uint32_t table) {
    const auto known = start_.find(table);
    if (known != start_.end()) {
      if (known->second) return *known->second;
      return fail(ErrorCode::kUnsupported,
                  fmt::format("the jumps of the layout form a loop through table {}", table));
    }
    const auto arcs = tables_.find(table);
    if (arcs == tables_.end()) return kEnd;
    start_[table] = std::nullopt;
    PlaceId next = kEnd;
    int jumps = 0;
    for (auto matcher = arcs->second.rbegin(); matcher != arcs->second.rend(); ++matcher) {
      auto place = place_of(*matcher, next, jumps);
      if (!place) return place;
      next = *place;
    }
    if (jumps > kMostJumps) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("the layout has more than {} jumps in a row", kMostJumps));
    }
    jumps_from_[table] = jumps;
    start_[table] = next;
    return next;
  }

  [[nodiscard]] const Place& operator[](PlaceId id) const { return places_[id]; }

  /// Where two ways meet again.
  [[nodiscard]] PlaceId meeting(PlaceId a, PlaceId b) const {
    while (a != b) {
      PlaceId& higher = places_[a].height >= places_[b].height ? a : b;
      higher = places_[higher].next;
    }
    return a;
  }

 private:
  /// `jumps`: raised to the most that can follow one another from here on.
  Result<PlaceId> place_of(const std::vector<Arc>& matcher, PlaceId next, int& jumps) {
    Place place{{}, next, places_[next].height + 1};
    std::string text;
    append(text, next);
    std::set<std::vector<std::uint64_t>> seen;  // of two rules alike in a matcher the first decides
    for (const Arc& arc : matcher) {
      if (!seen.insert(arc.cube.value).second) continue;
      Step step{&arc.cube, arc.entry.effect, arc.entry.jump != kNoJump, kEnd};
      if (step.jumps) {
        const auto to = start_of(arc.entry.jump);
        if (!to) return to;
        step.to = *to;
        jumps = std::max(jumps, jumps_from_[arc.entry.jump] + 1);
        if (takes_all(arc.cube)) return step.to;
      }
      for (const std::uint64_t word : arc.cube.value) append(text, word);
      for (const std::uint64_t word : arc.cube.fixed) append(text, word);
      append(text, step.effect);
      append(text, step.jumps);
      append(text, step.to);
      place.steps.push_back(step);
    }
    if (place.steps.empty()) return next;
    const auto [known, fresh] =
        by_text_.try_emplace(std::move(text), static_cast<PlaceId>(places_.size()));
    if (fresh) places_.push_back(std::move(place));
    return known->second;
  }

  const TableArcs& tables_;
  std::vector<Place> places_;
  std::unordered_map<std::string, PlaceId> by_text_;
  std::map<std::uint32_t, std::optional<PlaceId>> start_;  ///< empty while its table is open
  std::map<std::uint32_t, int> jumps_from_;
};

std::optional<Cube> meet(const Cube& a, const Cube& b) {
  Cube both = a;
  for (std::size_t w = 0; w < a.value.size(); ++w) {
    if (((a.value[w] ^ b.value[w]) & a.fixed[w] & b.fixed[w]) != 0) return std::nullopt;
    both.value[w] |= b.value[w];
    both.fixed[w] |= b.fixed[w];
  }
  return both;
}

/// The regions without a cube, again as disjoint cubes.
Regions outside(const Regions& regions, const Cube& cube) {
  Regions result;
  for (const Cube& region : regions) {
    if (!meet(region, cube)) {
      result.push_back(region);
      continue;
    }
    Cube rest = region;
    for (std::size_t w = 0; w < cube.fixed.size(); ++w) {
      for (std::uint64_t open = cube.fixed[w] & ~region.fixed[w]; open != 0; open &= open - 1) {
        const std::uint64_t bit = open & (~open + 1);
        rest.fixed[w] |= bit;
        rest.value[w] |= ~cube.value[w] & bit;
        result.push_back(rest);
        rest.value[w] ^= bit;
      }
    }
  }
  return result;
}

class Writer {
 public:
  Writer(const Places& places, std::size_t most_entries, std::uint64_t& comparisons_left,
         Pool& pool, std::vector<std::uint32_t>& list)
      : places_(places),
        most_entries_(most_entries),
        comparisons_left_(comparisons_left),
        pool_(pool),
        list_(list) {}

  /// Writes what is tried from one place until another, for the packets of `regions`. False when
  /// there is no room left.
  bool write(PlaceId from, PlaceId until, const Regions& regions) {
    struct Left {  // packets that jumped past some places come back at `at`
      PlaceId at;
      std::size_t still_away;  ///< of `away`, from then on
    };
    std::vector<Left> left;
    std::vector<Away> away;
    for (PlaceId at = from; at != until; at = places_[at].next) {
      while (!left.empty() && left.back().at == at) {
        away.resize(left.back().still_away);
        left.pop_back();
      }
      const Place& place = places_[at];
      const std::vector<Away> away_before = away;
      for (const Step& step : place.steps) {
        const Regions inside = here(regions, step, away_before);
        if (comparisons_left_ == 0) return false;
        if (inside.empty()) continue;
        if (!step.jumps) {
          if (!add(inside, step.effect)) return false;
          continue;
        }
        const std::size_t begin = list_.size();
        const PlaceId met = places_.meeting(step.to, place.next);
        const PlaceId first_back = left.empty() ? until : left.back().at;
        if (met == place.next) {
          if (!write(step.to, met, inside)) return false;
        } else if (met != kEnd && places_.meeting(met, first_back) == first_back) {
          if (!write(step.to, met, inside)) return false;
          if (left.empty() || left.back().at != met) left.push_back({met, away.size()});
          away.push_back({step.cube, begin, list_.size()});
        } else if (!write(step.to, kEnd, inside) || !add(inside, kMiss)) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  /// Packets that are elsewhere for a while, and the entries written for them there.
  struct Away {
    const Cube* cube;
    std::size_t begin;
    std::size_t end;
  };

  /// The packets of a step that are here. Those away need not be left out where an entry written
  /// for them takes all: it comes first.
  [[nodiscard]] Regions here(const Regions& regions, const Step& step,
                             const std::vector<Away>& away) {
    Regions inside;
    spend(regions.size());
    for (const Cube& region : regions) {
      if (auto part = meet(region, *step.cube)) inside.push_back(std::move(*part));
    }
    for (const Away& gone : away) {
      const auto common = meet(*step.cube, *gone.cube);
      spend(1);
      if (!common || inside.empty() || comparisons_left_ == 0) continue;
      if (!step.jumps && taken_by_one(*common, gone)) continue;
      inside = outside(inside, *gone.cube);
      spend(inside.size());
    }
    return inside;
  }

  void spend(std::uint64_t comparisons) {
    comparisons_left_ -= std::min(comparisons_left_, kCostOfCube * comparisons);
  }

  [[nodiscard]] bool taken_by_one(const Cube& cube, const Away& gone) {
    spend((gone.end - gone.begin) / kCostOfCube);
    for (std::size_t i = gone.begin; i < gone.end; ++i) {
      const std::uint64_t* value = pool_.value(list_[i]);
      const std::uint64_t* fixed = pool_.fixed(list_[i]);
      bool contains = true;
      for (std::size_t w = 0; w < pool_.words && contains; ++w) {
        contains = (fixed[w] & ~cube.fixed[w]) == 0 && ((value[w] ^ cube.value[w]) & fixed[w]) == 0;
      }
      if (contains) return true;
    }
    return false;
  }

  bool add(const Regions& regions, std::uint32_t effect) {
    if (list_.size() + regions.size() > most_entries_) return false;
    for (const Cube& region : regions) list_.push_back(pool_.add(region, {effect, kNoJump}));
    return true;
  }

  const Places& places_;
  std::size_t most_entries_;
  std::uint64_t& comparisons_left_;
  Pool& pool_;
  std::vector<std::uint32_t>& list_;  ///< of entries in the pool
};

}  // namespace

Result<void> flatten(const TableArcs& tables, std::uint32_t first_table, const Cube& whole,
                     std::size_t most_entries, std::uint64_t& comparisons_left, Pool& pool) {
  Places places(tables);
  const auto start = places.start_of(first_table);
  if (!start) return pass_on(start);
  Writer writer(places, most_entries, comparisons_left, pool, pool.tables[first_table]);
  if (!writer.write(*start, kEnd, {whole})) {
    return fail(ErrorCode::kTooBig,
                fmt::format("its jumps written out make more than {} rules", most_entries));
  }
  return {};
}

}  // namespace greynic::verify
