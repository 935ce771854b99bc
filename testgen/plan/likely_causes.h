#pragma once

/// What may be the cause of a fault, and which of it rows have met. A cause is one to three
/// conditions on different parameters, as a trigger is: a level, or for a parameter whose levels
/// ascend "at least" or "at most" a level. One, two and three conditions are equally likely, and so
/// is each set of conditions of the same number.

#include <cstdint>
#include <vector>

#include "engine/engine_bits.h"

namespace greynic::testgen {

/// A level for each parameter; -1: absent.
using LevelRow = std::vector<int>;

/// What conditions there are on one parameter.
struct Axis {
  std::uint32_t levels = 0;
  bool ordered = false;  ///< its levels ascend
};

/// Conditions, numbered through by parameter. "At least the lowest" says nothing and is none.
class Conditions {
 public:
  explicit Conditions(const std::vector<Axis>& axes);

  [[nodiscard]] std::uint32_t count() const { return first_.back(); }
  [[nodiscard]] std::size_t parameters() const { return axes_.size(); }
  /// The first condition on the same parameter as this one.
  [[nodiscard]] std::uint32_t first_beside(std::uint32_t condition) const {
    return first_[parameter_[condition]];
  }
  /// Those that a row meets, ascending.
  [[nodiscard]] std::vector<std::uint32_t> met_by(const LevelRow& row) const;

 private:
  std::vector<Axis> axes_;
  std::vector<std::uint32_t> first_;      ///< of each parameter; one more at the end
  std::vector<std::uint32_t> parameter_;  ///< of each condition
};

class LikelyCauses {
 public:
  /// Causes of three conditions are left out where they take too much room, or time for so many
  /// rows.
  LikelyCauses(Conditions conditions, std::size_t rows);

  [[nodiscard]] bool triples() const { return !triples_.empty(); }
  /// How likely a cause is that this row meets and no row taken before.
  [[nodiscard]] double fresh(const LevelRow& row) { return meet(row, false); }
  void take(const LevelRow& row) { meet(row, true); }

 private:
  double meet(const LevelRow& row, bool take);
  int count_fresh(Word* seen, std::size_t end, bool take) const;

  Conditions conditions_;
  std::size_t words_;
  Words singles_;
  Words pairs_;    ///< of each condition, those below it
  Words triples_;  ///< of each two conditions, those below both; may be empty
  Words row_;
};

}  // namespace greynic::testgen
