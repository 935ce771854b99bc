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

/// What `greynic explain` was asked.
struct ExplainRequest {
  std::string file;    ///< a run, or a campaign
  std::string target;  ///< empty: from the stored observations alone
  std::string
      witness;  ///< JSON file, factor -> level; empty: the run's walls, or what a plan finds
  std::string baseline;  ///< JSON file, factor -> level; empty: the campaign's
  std::string log;  ///< of a campaign: the run to read, if it is there, or to keep the tests in
  std::uint64_t seed = 1;  ///< of a campaign's tests
  causal::ExplainOptions options;
};

/// Explains the run in a file and keeps the explanation with it: on the target named, which may be
/// asked for further tests, or from the stored observations when `target` is empty. A campaign
/// needs no run first: what is wanted to be known is measured.
[[nodiscard]] Result<causal::Explanation> explain_file(const ExplainRequest& request,
                                                       const Talk& talk);

}  // namespace greynic::loop
