#include "validity/space_solver.h"

#include <cadical.hpp>

#include "greynic/core/check.h"

namespace greynic::testgen {

namespace {

constexpr int kPairwiseLevels = 12;  // above, a ladder of helper variables is smaller

}  // namespace

SpaceSolver::SpaceSolver(const Space& space)
    : space_(space), solver_(std::make_unique<CaDiCaL::Solver>()) {
  solver_->set("quiet", 1);
  const auto clause = [this](std::initializer_list<int> literals) {
    for (const int literal : literals) solver_->add(literal);
    solver_->add(0);
  };
  int next = 1;
  first_variable_.reserve(space.parameters.size());
  for (const Parameter& parameter : space.parameters) {
    first_variable_.push_back(next);
    next += parameter.level_count <= 2 ? 1 : parameter.level_count;
  }
  for (std::size_t p = 0; p < space.parameters.size(); ++p) {
    const int count = space.parameters[p].level_count;
    const int first = first_variable_[p];
    if (count == 1) clause({-first});
    if (count <= 2) continue;
    for (int level = 0; level < count; ++level) solver_->add(first + level);
    solver_->add(0);
    if (count <= kPairwiseLevels) {
      for (int a = 0; a < count; ++a) {
        for (int b = a + 1; b < count; ++b) clause({-(first + a), -(first + b)});
      }
    } else {
      // ladder[i]: some level up to i is taken.
      const int ladder = next;
      next += count;
      for (int level = 0; level < count; ++level) {
        clause({-(first + level), ladder + level});
        if (level == 0) continue;
        clause({-(ladder + level - 1), ladder + level});
        clause({-(ladder + level - 1), -(first + level)});
      }
    }
  }
  for (const Clause& given : space.clauses) add(given);
}

SpaceSolver::~SpaceSolver() = default;

int SpaceSolver::to_solver(Literal literal) const {
  const int count = space_.parameters[literal.parameter].level_count;
  const int first = first_variable_[literal.parameter];
  GREYNIC_CHECK(literal.level < count);
  const int positive = count <= 2 ? (literal.level == 1 ? first : -first) : first + literal.level;
  return literal.positive ? positive : -positive;
}

void SpaceSolver::add(const Clause& clause) {
  for (const Literal& literal : clause) solver_->add(to_solver(literal));
  solver_->add(0);
}

void SpaceSolver::prefer(const std::vector<int>& levels) {
  for (std::size_t p = 0; p < levels.size() && p < space_.parameters.size(); ++p) {
    const int count = space_.parameters[p].level_count;
    if (count < 2 || levels[p] < 0) continue;
    for (int level = 0; level < count; ++level) {
      const Literal literal{static_cast<std::uint32_t>(p), static_cast<std::uint16_t>(level), true};
      const int variable = to_solver(literal);
      if (count == 2 && level != levels[p]) continue;
      solver_->phase(level == levels[p] ? variable : -variable);
    }
  }
}

std::optional<Row> SpaceSolver::solve(std::span<const Literal> assumptions) {
  for (const Literal& literal : assumptions) solver_->assume(to_solver(literal));
  if (solver_->solve() != 10) return std::nullopt;
  Row row(space_.parameters.size(), 0);
  for (std::size_t p = 0; p < row.size(); ++p) {
    const int count = space_.parameters[p].level_count;
    const int first = first_variable_[p];
    if (count <= 2) {
      row[p] = count == 2 && solver_->val(first) > 0 ? 1 : 0;
      continue;
    }
    for (int level = 0; level < count; ++level) {
      if (solver_->val(first + level) > 0) row[p] = static_cast<std::uint16_t>(level);
    }
  }
  return row;
}

}  // namespace greynic::testgen
