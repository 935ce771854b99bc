#pragma once

/// Whether a valid row stays valid when one parameter changes its level: only clauses that speak of
/// the parameter and are not satisfied by its new level need a look.

#include <algorithm>
#include <span>
#include <vector>

#include "engine/engine_values.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

class RowRules {
 public:
  RowRules(const Space& space, const ValueIndex& index)
      : index_(index), broken_by_(index.values()) {
    for (const Clause& clause : space.clauses) {
      const auto at = static_cast<std::uint32_t>(literals_.size());
      literals_.push_back({static_cast<std::uint32_t>(clause.size()), 0, false});
      for (const Literal& l : clause) {
        literals_.push_back({l.parameter, index.value(l.parameter, l.level), l.positive});
      }
      std::vector<std::uint32_t> parameters;
      for (const Literal& l : clause) parameters.push_back(l.parameter);
      std::sort(parameters.begin(), parameters.end());
      parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
      for (const std::uint32_t p : parameters) {
        for (Value v = index.first(p); v < index.first(p) + index.level_count(p); ++v) {
          bool satisfied = false;
          for (const Literal& l : clause) {
            if (l.parameter == p) satisfied |= (v == index.value(p, l.level)) == l.positive;
          }
          if (!satisfied) broken_by_[v].push_back(at);
        }
      }
    }
  }

  /// `row` is valid, one value a parameter. Is it still when w replaces its parameter's value?
  [[nodiscard]] bool allows(const Value* row, Value w) const {
    const std::uint32_t p = index_.parameter(w);
    for (const std::uint32_t at : broken_by_[w]) {
      bool satisfied = false;
      for (std::uint32_t i = 1; i <= literals_[at].parameter && !satisfied; ++i) {
        const Part& l = literals_[at + i];
        satisfied = l.parameter != p && (row[l.parameter] == l.value) == l.positive;
      }
      if (!satisfied) return false;
    }
    return true;
  }

 private:
  struct Part {  ///< a literal; the first of a clause holds the number of literals instead
    std::uint32_t parameter;
    Value value;
    bool positive;
  };
  const ValueIndex& index_;
  std::vector<Part> literals_;
  std::vector<std::vector<std::uint32_t>> broken_by_;
};

}  // namespace greynic::testgen
