#pragma once

/// Arrays as tables: a header row with the parameters' names, then one row of levels a line,
/// separated by tabs. An absent conditional parameter is an empty cell.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/language/cover_model.h"

namespace greynic::language {

using LevelRows = std::vector<std::vector<int>>;

/// Values with aliases show their names in turn.
[[nodiscard]] std::string rows_to_tsv(const CoverModel& model, const LevelRows& rows);

/// Reads such a table, columns in any order, or the JSON that `greynic cover --json` writes.
/// kBadInput with file and line: a column that is missing or unknown, a value that is no level, no
/// rows' end.
[[nodiscard]] Result<LevelRows> parse_rows(const CoverModel& model, std::string_view text,
                                           const std::string& source);

/// What the levels of all rows cost together; empty when no level of the model costs anything.
[[nodiscard]] std::optional<double> cost_of(const CoverModel& model, const LevelRows& rows);

}  // namespace greynic::language
