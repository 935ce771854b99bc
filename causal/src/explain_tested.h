#pragma once

/// Explaining with a laboratory: walls are judged, and their causes found, by tests.

#include "greynic/causal/explain.h"

namespace greynic::causal {

[[nodiscard]] Result<Explanation> explain_tested(const Campaign& campaign,
                                                 const Configuration& baseline,
                                                 std::span<const Observation> observations,
                                                 const ExplainOptions& options,
                                                 const Laboratory& laboratory);

/// An explanation that says what was asked and nothing more.
[[nodiscard]] Explanation explanation_of(const Campaign& campaign, const Configuration& baseline,
                                         const ExplainOptions& options);

[[nodiscard]] std::string too_short_note(std::size_t count);

}  // namespace greynic::causal
