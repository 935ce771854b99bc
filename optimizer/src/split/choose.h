#pragma once

/// Which candidates become entries: those that save most for each entry that they take.

#include <cstdint>
#include <vector>

#include "src/split/candidates.h"

namespace greynic::optimizer::split {

struct Choosing {
  std::size_t entries = 0;  ///< at most
  double slow_path = 0.0;   ///< what a packet saves that need not go there
  bool hyper = true;        ///< flows by themselves may be taken
  bool covers = true;       ///< rules behind others may be taken
  /// What a new matcher is charged for each packet that may come by it, in matchers.
  double matcher_price = 1.0;
  /// Share of the packets, 0..1, that will be of flows which nobody has seen: of the same rules, and
  /// elsewhere in them. What holds for these is learnt from flows that did not lead to an entry.
  double new_flows = 0.0;
};

/// Places in the candidates.
struct Chosen {
  std::vector<std::uint32_t> flows;  ///< for the hyper mask
  std::vector<std::uint32_t> pieces;
  std::vector<std::uint32_t> rows;    ///< of the problem, ascending
  std::vector<std::uint32_t> covers;  ///< of the problem, ascending; none of `rows`
  double slow_seen = 0.0;             ///< share of the packets of known flows that goes to software
  double slow_new = 0.0;              ///< the same of new flows, as far as can be told
};

[[nodiscard]] Chosen choose(const Problem& problem, const Candidates& candidates,
                            const Choosing& choosing);

}  // namespace greynic::optimizer::split
