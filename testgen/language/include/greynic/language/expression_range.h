#pragma once

/// What an expression can be when each parameter is only known to have one of a set of levels.
/// Sums, products and quotients are followed by the smallest and the largest value, so the answer
/// may hold truths that no levels bring about, but never lacks one that some do.

#include <cstdint>
#include <functional>
#include <vector>

#include "greynic/language/expression.h"

namespace greynic::language {

/// A set of truths.
struct Truths {
  bool false_too = false;
  bool unknown_too = false;
  bool true_too = false;
  [[nodiscard]] bool only_false() const { return false_too && !unknown_too && !true_too; }
  [[nodiscard]] bool only_true() const { return true_too && !unknown_too && !false_too; }
};

/// Levels that a parameter may have; -1: absent. Not empty.
using LevelSets = std::function<const std::vector<int>&(std::uint32_t parameter)>;

[[nodiscard]] Truths possible_truths(const Expr& expression, const LevelSets& levels_of,
                                     const std::function<double(std::uint32_t, int)>& number_of);

}  // namespace greynic::language
