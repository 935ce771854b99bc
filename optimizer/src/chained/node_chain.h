#pragma once

/// A node as one chain: what it is made of, and what it costs.

#include <optional>

#include "src/chain.h"
#include "src/chained/node.h"

namespace greynic::optimizer::chained {

/// Leaves out what stands behind a unit that takes all packets; whether there is one.
bool end_at_last_word(Node& node);

struct WrittenOut {
  Problem rows;  ///< `rule` are units
  std::optional<std::vector<RowPair>>
      order;  ///< pairs of rows that must keep theirs, where all are listed
};

/// The rows of a node, with ports written out. In a region two rows may look at the same: the
/// earlier is kept.
[[nodiscard]] WrittenOut written_out(const Units& units, const Node& node);

[[nodiscard]] Chain chain_of(const WrittenOut& written, circles::Care care = circles::Care::kFull);

/// What the chain of a small node costs: `hoped` does not know that rules which must come before others may keep
/// those waiting. Of other nodes `hoped`. `missing`: packets that no row decides.
[[nodiscard]] double cost_as_made(const Units& units, const Node& node, double hoped,
                                  double missing);

}  // namespace greynic::optimizer::chained
