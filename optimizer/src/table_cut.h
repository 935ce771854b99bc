#pragma once

/// One cut of a table: a coarse mask whose values send packets on to small tables.
///
/// The rules that look at every bit of the mask fall into one part for each value they have there.
/// The other rules go to every part that they overlap, and once to the rest: the packets that have
/// none of the values, which go on in the same table.

#include <cstdint>
#include <vector>

#include "overlap.h"

namespace greynic::optimizer {

/// Packets with weights, and which row of a problem decides each (kNoRow: none).
struct Deciders {
  std::vector<std::uint32_t> packets;  ///< indices into the packed packets
  std::vector<std::uint32_t> row;
};

struct Cut {
  std::vector<Word> mask;
  double cost = 0.0;        ///< estimate after the cut, in weight x matchers tried
  std::size_t entries = 0;  ///< estimate after the cut, jumps included
};

/// Rows of a problem sorted into the parts of a cut.
struct Parts {
  std::vector<std::vector<std::uint32_t>> rows;  ///< by part, ascending
  std::vector<std::uint32_t> example;            ///< by part: a row that has its value
  std::vector<std::uint32_t> rest;               ///< rows for packets without any of the values
};

/// Whether a match on the field has to look at this header, too, in one of its alternatives.
[[nodiscard]] bool needs_header(MatchField field, MatchField header);

/// Adds the headers that a field needs, as far as the row looks at them: a device takes no match on
/// TCP flags that does not say TCP.
void add_headers(Mask& mask, MatchField field, const Mask& of_row);

/// Weight x matchers tried of a chain in which no precedence stood against the weights: what a
/// chain can hope for, and a fair measure to compare cuts by.
[[nodiscard]] double hoped_cost(const Problem& problem, double missing_weight);

/// Sorts the rows; gives up, with no parts, when more than `most_entries` would come out.
[[nodiscard]] Parts split_rows(const Problem& problem, const std::vector<Word>& mask,
                               std::size_t most_entries);

/// The part of each packet of `deciders`; kNoRow for the rest.
[[nodiscard]] std::vector<std::uint32_t> split_packets(const Problem& problem,
                                                       const std::vector<Word>& mask,
                                                       const Parts& parts, const Rows& packets,
                                                       const Deciders& deciders);

/// The cut into at most `most_parts` with the largest gain less `price` an added entry; its mask is
/// empty when none gains.
[[nodiscard]] Cut best_cut(const Problem& problem, const Rows& packets,
                           const std::vector<double>& packet_weight, const Deciders& deciders,
                           double price, std::size_t most_entries, std::size_t most_parts);

}  // namespace greynic::optimizer
