#pragma once

/// Small random constrained spaces and the brute force that knows everything about them.

#include <map>
#include <random>
#include <set>
#include <vector>

#include "greynic/testgen/cover.h"

namespace greynic::testgen {

/// A space of few parameters: at most `most_parameters` of 1 to 4 levels, clauses of 1 to 3
/// literals.
inline Space random_space(std::mt19937& rng, std::uint32_t most_parameters) {
  const auto pick = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(rng() % bound); };
  Space space;
  const std::uint32_t count = 2 + pick(most_parameters - 1);
  for (std::uint32_t p = 0; p < count; ++p) {
    Parameter parameter;
    parameter.level_count = static_cast<std::uint16_t>(pick(8) == 0 ? 1 : 2 + pick(3));
    if (pick(10) == 0) parameter.absent_level = static_cast<int>(pick(parameter.level_count));
    if (pick(12) == 0) parameter.covered = false;
    space.parameters.push_back(parameter);
  }
  const std::uint32_t clauses = pick(2 * count);
  for (std::uint32_t c = 0; c < clauses; ++c) {
    Clause clause;
    const std::uint32_t size = pick(12) == 0 ? 1 : 2 + pick(2);
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t p = pick(count);
      clause.push_back(
          {p, static_cast<std::uint16_t>(pick(space.parameters[p].level_count)), pick(3) == 0});
    }
    space.clauses.push_back(clause);
  }
  return space;
}

/// Does the row satisfy every clause?
inline bool is_valid(const Space& space, const Row& row) {
  for (const Clause& clause : space.clauses) {
    bool holds = false;
    for (const Literal& l : clause) holds = holds || (row[l.parameter] == l.level) == l.positive;
    if (!holds) return false;
  }
  return true;
}

/// Every valid row, by counting through all of them.
inline std::vector<Row> valid_rows(const Space& space) {
  std::vector<Row> rows;
  Row row(space.parameters.size(), 0);
  while (true) {
    if (is_valid(space, row)) rows.push_back(row);
    std::size_t p = 0;
    while (p < row.size() && ++row[p] == space.parameters[p].level_count) row[p++] = 0;
    if (p == row.size()) return rows;
  }
}

/// All choices of `size` of the given parameters.
inline std::vector<std::vector<std::uint32_t>> choices(const std::vector<std::uint32_t>& from,
                                                       std::size_t size) {
  std::vector<std::vector<std::uint32_t>> out;
  std::vector<bool> in(from.size(), false);
  std::fill(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(std::min(size, from.size())),
            true);
  if (size > from.size()) return out;
  do {
    std::vector<std::uint32_t> choice;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (in[i]) choice.push_back(from[i]);
    }
    out.push_back(choice);
  } while (std::prev_permutation(in.begin(), in.end()));
  return out;
}

/// Tuples over the choices of parameters that occur in the rows, absent levels apart.
inline std::set<Tuple> tuples_in(const Space& space, const std::vector<Row>& rows,
                                 const std::vector<std::vector<std::uint32_t>>& parameters) {
  std::set<Tuple> tuples;
  for (const auto& choice : parameters) {
    for (const Row& row : rows) {
      Tuple tuple;
      bool there = true;
      for (const std::uint32_t p : choice) {
        there = there && static_cast<int>(row[p]) != space.parameters[p].absent_level;
        tuple.emplace_back(p, row[p]);
      }
      if (there) tuples.insert(tuple);
    }
  }
  return tuples;
}

/// Every tuple there is over the choices, feasible or not, absent levels apart.
inline std::set<Tuple> all_tuples(const Space& space,
                                  const std::vector<std::vector<std::uint32_t>>& parameters) {
  Space free = space;
  free.clauses.clear();
  return tuples_in(space, valid_rows(free), parameters);
}

inline std::vector<std::uint32_t> covered_parameters(const Space& space) {
  std::vector<std::uint32_t> covered;
  for (std::uint32_t p = 0; p < space.parameters.size(); ++p) {
    if (space.parameters[p].covered) covered.push_back(p);
  }
  return covered;
}

}  // namespace greynic::testgen
