#pragma once

/// From a model to clauses, and to an array that covers it.

#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/language/cover_model.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

struct CompileOptions {
  std::size_t most_nodes = 200'000;  ///< of one constraint's decision diagram; beyond: kTooBig
};

/// The model's parameters come first in the space and in the same order; helpers follow. A
/// parameter with a condition has one level more, its last, for "absent". Seeds are completed to
/// whole rows. Errors: kTooBig (a constraint too entangled: it names it), kInfeasible (a seed that
/// is not valid, or nothing is: it names the constraints).
[[nodiscard]] Result<Space> compile(const language::CoverModel& model,
                                    const CompileOptions& options = {});

/// The levels of the model's own parameters in a row of the space; -1: absent.
[[nodiscard]] std::vector<int> decode(const language::CoverModel& model, const Row& row);

/// An array for the model: rows of levels, -1 absent.
struct ModelCover {
  std::vector<std::vector<int>> rows;
  Cover summary;  ///< its rows are those of the space
};

/// Compiles and covers. Models with negative levels are covered in two passes: first without any of
/// them, so that no valid tuple hides behind a negative level, then every tuple with one.
[[nodiscard]] Result<ModelCover> cover_model(const language::CoverModel& model,
                                             const CoverOptions& options);

/// {"version":1,"parameters":[...],"rows":[[...]],"summary":{...}}
[[nodiscard]] std::string cover_to_json_text(const language::CoverModel& model,
                                             const ModelCover& cover, int strength);

}  // namespace greynic::testgen
