#pragma once

/// The packets that come to one input table, and which of its rows decide them.

#include <cstdint>
#include <vector>

#include "src/problem.h"

namespace greynic::optimizer {

/// The packets that come to one table, packed for it.
struct Entering {
  Rows packets;
  std::vector<double> weight;
};

/// Weights as shares of the table's traffic.
[[nodiscard]] Entering entering(const Traffic& traffic, const Columns& columns);

/// What each row gets, so that rules that the traffic misses are not thrown about.
inline constexpr double kWeightTrace = 1e-6;

/// Sets the weight of each row to the traffic that it decides, and a trace; where there is none, to
/// equal parts. Returns the row that decides each packet.
std::vector<std::uint32_t> weigh(Problem& problem, const Entering& traffic);

/// The row that decides each packet once only the rows `kept` are there, as numbered in `deciding`.
[[nodiscard]] std::vector<std::uint32_t> among_kept(std::vector<std::uint32_t> hits,
                                                    std::size_t rows,
                                                    const std::vector<std::uint32_t>& kept,
                                                    const Problem& deciding, const Rows& packets);

/// The first id that neither a table nor a jump of the input uses.
[[nodiscard]] std::uint32_t first_free_table(const RuleSet& rules);

}  // namespace greynic::optimizer
