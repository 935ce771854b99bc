#pragma once

/// CaDiCaL over a Space: is there a row with these levels, and which? One solver serves many
/// questions, each asked under assumptions.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "greynic/testgen/cover.h"

namespace CaDiCaL {
class Solver;
}

namespace greynic::testgen {

class SpaceSolver {
 public:
  explicit SpaceSolver(const Space& space);
  ~SpaceSolver();
  SpaceSolver(const SpaceSolver&) = delete;
  SpaceSolver& operator=(const SpaceSolver&) = delete;

  /// A row that satisfies every clause and every assumption; empty when there is none.
  [[nodiscard]] std::optional<Row> solve(std::span<const Literal> assumptions = {});
  /// Makes the solver prefer these levels where it is free (a row of the space's own parameters or
  /// fewer; levels beyond are left alone).
  void prefer(const std::vector<int>& levels);
  /// Adds a clause for good.
  void add(const Clause& clause);

 private:
  [[nodiscard]] int to_solver(Literal literal) const;

  const Space& space_;
  std::vector<int> first_variable_;  ///< of each parameter; two levels share one variable
  std::unique_ptr<CaDiCaL::Solver> solver_;
};

}  // namespace greynic::testgen
