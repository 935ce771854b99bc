#pragma once

/// How many valid rows a model has. Parameters that no constraint joins are counted apart: parts
/// with few combinations by going through them, larger ones by Knuth's estimate over random ways
/// through the tree of settings, every step of which CaDiCaL keeps valid.

#include "greynic/language/cover_model.h"
#include "greynic/testgen/plan.h"

namespace greynic::testgen {

/// Product of all level counts.
[[nodiscard]] SpaceSize raw_size(const language::CoverModel& model);

struct CountOptions {
  std::uint64_t seed = 1;
  double seconds = 1.0;                 ///< for all estimates together, of wall time
  std::uint64_t most_listed = 100'000;  ///< combinations of a part that are gone through
};

/// `space` is the compiled model.
[[nodiscard]] SpaceSize valid_size(const language::CoverModel& model, const Space& space,
                                   const CountOptions& options = {});

/// Every valid row, in lexicographic order; kTooBig beyond `most`.
[[nodiscard]] Result<std::vector<std::vector<int>>> all_rows(const language::CoverModel& model,
                                                             const Space& space,
                                                             std::uint64_t most);

/// `count` different valid rows at random (all of them when there are no more). Uniform where
/// random rows are often valid; else every factor in random order takes a random level that still
/// can be.
[[nodiscard]] std::vector<std::vector<int>> random_rows(const language::CoverModel& model,
                                                        const Space& space, std::uint64_t count,
                                                        std::uint64_t seed);

}  // namespace greynic::testgen
