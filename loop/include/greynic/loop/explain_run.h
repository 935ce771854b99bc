#pragma once

/// Explains a stored run, with or without its device.

#include <string>

#include "greynic/causal/explain.h"
#include "greynic/loop/talk.h"
#include "greynic/results/store.h"
#include "greynic/target/target.h"

namespace greynic::loop {

/// From the stored observations alone; the causes are hypotheses.
[[nodiscard]] Result<causal::Explanation> explain_stored(const results::RunStore& store,
                                                         const causal::ExplainOptions& options);

/// May order tests from the device; they, and the explanation, are stored with the run.
[[nodiscard]] Result<causal::Explanation> explain_on(target::Target& device,
                                                     results::RunStore& store,
                                                     const causal::ExplainOptions& options,
                                                     const Talk& talk);

/// Explains the run in a file and keeps the explanation with it: on the target named, which may be
/// asked for further tests, or from the stored observations when `target` is empty.
[[nodiscard]] Result<causal::Explanation> explain_file(const std::string& run,
                                                       const std::string& target,
                                                       const causal::ExplainOptions& options,
                                                       const Talk& talk);

}  // namespace greynic::loop
