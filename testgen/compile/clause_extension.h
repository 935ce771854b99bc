#pragma once

/// What the generator asks of a model's extension beyond judging rows.

#include "greynic/core/result.h"
#include "greynic/language/cover_model.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

class ClauseExtension : public language::ModelExtension {
 public:
  /// Adds clauses, with helpers where needed, that hold exactly where nothing is broken.
  [[nodiscard]] virtual Result<void> compile(const language::CoverModel& model,
                                             Space& space) const = 0;
};

}  // namespace greynic::testgen
