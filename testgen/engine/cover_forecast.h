#pragma once

/// What an array is going to take, told before the first row from counts alone: levels, parameters,
/// tuples. Constraints are not looked at, so that a model whose constraints ask for many more rows
/// than its levels do takes longer than foretold.
///
/// Rows: a greedy row leaves a tuple of a choice of parameters with L combinations open with about
/// the chance exp(-c / L), so the array is full after the N rows for which the sum of exp(-c N / L)
/// over all choices is 1. Work: what the tables cost a row, and a search whose work was found to
/// grow with the root of tuples times cells. The constants are medians over some 500 arrays of
/// published and random models of strength 2 to 6.

#include <cstddef>
#include <vector>

#include "engine/engine_values.h"
#include "engine/local_search.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

struct Forecast {
  double rows = 0.0;   ///< of the finished array
  double steps = 0.0;  ///< of one attempt; about a nanosecond each
};

[[nodiscard]] Forecast forecast(const Space& space, const ValueIndex& index,
                                const std::vector<Layer>& layers);

/// Bytes of the tables of open tuples of a layer, in one thread.
[[nodiscard]] double table_bytes(const ValueIndex& index, const Layer& layer);

/// Steps to lay these tables out, to build one row on them, and of one unit of LocalSearch::work().
[[nodiscard]] double steps_to_lay_out(const ValueIndex& index, const Layer& layer);
[[nodiscard]] double steps_of_a_row(const ValueIndex& index, const Layer& layer);
[[nodiscard]] double steps_of_search_work(const std::vector<Layer>& layers);

/// How many tuples a layer has, feasible or not, absent levels apart.
[[nodiscard]] double tuples_of(const Space& space, const Layer& layer);

/// What tables may take when nobody says: 8 GiB, or what this machine has left where that is less.
[[nodiscard]] double affordable_bytes();

}  // namespace greynic::testgen
