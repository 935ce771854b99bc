#pragma once

/// Explaining a run, with or without its device: shared by the commands explain and tune.

#include "greynic/causal/explain.h"
#include "greynic/results/store.h"
#include "greynic/target/target.h"
#include "talk.h"

namespace greynic::cli {

/// From the stored observations alone; the causes are hypotheses.
[[nodiscard]] Result<causal::Explanation> explain_stored(const results::RunStore& store,
                                                         const causal::ExplainOptions& options);

/// May order tests from the device; they, and the explanation, are stored with the run.
[[nodiscard]] Result<causal::Explanation> explain_on(target::Target& device,
                                                     results::RunStore& store,
                                                     const causal::ExplainOptions& options);

}  // namespace greynic::cli
