#pragma once

/// Verifies an array against a model, whoever made it: every row valid, every feasible tuple in
/// some row. Shares nothing with the generator: rows are judged by evaluating the constraints as
/// they are written, tuples are counted over columns of row sets, and whether a tuple that no row
/// has could be had is decided by CaDiCaL on an encoding of its own.

#include <cstdint>
#include <string>
#include <vector>

#include "greynic/testgen/array_file.h"
#include "greynic/testgen/cover_model.h"

namespace greynic::testgen {

struct CheckReport {
  std::size_t rows = 0;
  std::size_t invalid_rows = 0;
  std::uint64_t tuples_covered = 0;
  std::uint64_t tuples_missing = 0;  ///< feasible, in no valid row
  std::uint64_t tuples_infeasible = 0;
  std::uint64_t tuples_undecided = 0;  ///< feasibility could not be settled
  std::vector<std::string> findings;   ///< for people: the first invalid rows and missing tuples

  [[nodiscard]] bool good() const {
    return invalid_rows == 0 && tuples_missing == 0 && tuples_undecided == 0;
  }
};

[[nodiscard]] CheckReport check_array(const CoverModel& model, const LevelRows& rows, int strength);

/// Why a tuple of a model cannot be: "p=1, q=2: 'p == 1 -> q != 2' (line 7)", one line for each.
[[nodiscard]] std::vector<std::string> explain_infeasible(const CoverModel& model,
                                                          const std::vector<Tuple>& tuples);

}  // namespace greynic::testgen
