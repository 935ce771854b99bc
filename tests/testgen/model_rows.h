#pragma once

/// All rows of a small model, for oracles that try each.

#include <vector>

#include "greynic/language/cover_model.h"

namespace greynic::testgen {

/// Calls `visit` with each row of levels, in the order of counting.
template <typename Visit>
void for_each_row(const language::CoverModel& model, Visit visit) {
  std::vector<int> row(model.parameters.size(), 0);
  for (std::size_t i = 0; i < row.size();) {
    if (i == 0) visit(row);
    if (++row[i] < static_cast<int>(model.parameters[i].levels.size())) {
      i = 0;
    } else {
      row[i++] = 0;
    }
  }
}

}  // namespace greynic::testgen
