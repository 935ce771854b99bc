#pragma once

/// Which masks to keep when rules may be written out under wider ones: as few as the entries allow.
///
/// A rule of mask A is written out under a mask B that looks at all of A and k bits more as 2^k entries.
/// So the masks that are kept are sites, each rule goes to the cheapest site, and a budget bounds the
/// entries: facility location. With a price for an entry in place of the budget (Lagrange), dual ascent
/// (Erlenkotter, Operations Research 26(6), 1978) gives a lower bound for every choice of sites, and a
/// choice to begin with; closing and opening sites improves it.

#include <cstdint>
#include <vector>

#include "src/ternary.h"

namespace greynic::optimizer::masks {

/// Masks, with the number of rules of each, and where these rules may go.
class Sites {
 public:
  /// `candidates`: the masks themselves, and unions of two that lie close; `most_entries` for all
  /// rules of a mask.
  Sites(std::vector<std::vector<Word>> masks, std::vector<std::size_t> rules,
        std::size_t most_entries);

  struct Way {
    std::uint32_t other = 0;  ///< a candidate of a mask, or a mask of a candidate
    double extra = 0.0;       ///< entries beyond one for each rule
  };
  [[nodiscard]] std::size_t masks() const { return ways_of_mask_.size(); }
  [[nodiscard]] std::size_t candidates() const { return candidates_.size(); }
  [[nodiscard]] const std::vector<Word>& candidate(std::uint32_t place) const {
    return candidates_[place];
  }
  /// Cheapest first; the first is the mask itself.
  [[nodiscard]] const std::vector<Way>& ways_of_mask(std::uint32_t mask) const {
    return ways_of_mask_[mask];
  }
  [[nodiscard]] const std::vector<Way>& ways_of_candidate(std::uint32_t candidate) const {
    return ways_of_candidate_[candidate];
  }

 private:
  void add_unions(const std::vector<std::size_t>& rules, std::size_t most_entries);

  std::vector<std::vector<Word>> candidates_;  ///< the masks themselves first
  std::vector<std::vector<Way>> ways_of_mask_;
  std::vector<std::vector<Way>> ways_of_candidate_;
};

struct Merging {
  std::vector<std::uint32_t> site_of;  ///< by mask: place of a candidate
  std::size_t kept = 0;                ///< candidates that are some mask's site
  double extra = 0.0;                  ///< entries beyond one for each rule
};

struct Merged {
  Merging merging;         ///< as few sites as were found
  std::size_t fewest = 0;  ///< fewer do not suffice, whichever candidates they are
};

/// For each number of entries that there may be more, ascending.
[[nodiscard]] std::vector<Merged> merge(const Sites& sites, const std::vector<double>& most_extra);

}  // namespace greynic::optimizer::masks
