#pragma once

/// Verifies an array against a model, whoever made it: every row is valid, and every seed and every
/// feasible tuple is in some row, or, for tuples, in a row that was run before.
///
/// The checker has no code of the generator: tests/structure proves it from includes and links. Both
/// know the room language, which says what a model means. From it the checker takes is_valid, which
/// evaluates constraints as they are written, and ModelOracle, which puts them to CaDiCaL as they are
/// written. The generator works on clauses of its own, and takes only its messages from that room.
/// Tuples are counted over the sets of rows that have a level.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "greynic/language/array_file.h"
#include "greynic/language/cover_model.h"

namespace greynic::check {

struct CheckReport {
  std::size_t rows = 0;
  std::size_t invalid_rows = 0;
  std::size_t seeds_missing = 0;  ///< of the model, in no row
  std::uint64_t tuples_covered = 0;
  std::uint64_t tuples_missing = 0;  ///< feasible, in no valid row
  std::uint64_t tuples_infeasible = 0;
  std::uint64_t tuples_undecided = 0;  ///< feasibility could not be settled
  std::vector<std::string> findings;   ///< for people: the first invalid rows and missing tuples

  [[nodiscard]] bool good() const {
    return invalid_rows == 0 && seeds_missing == 0 && tuples_missing == 0 && tuples_undecided == 0;
  }
};

/// Told before and during the count of the tuples of all parameters, of each sub-model, and of
/// rows without negative levels: the share that is done, and how many there are at most.
using CheckProgress = std::function<void(double share_done, double tuples)>;

[[nodiscard]] CheckReport check_array(const language::CoverModel& model,
                                      const language::LevelRows& rows, int strength,
                                      const CheckProgress& progress = {});

}  // namespace greynic::check
