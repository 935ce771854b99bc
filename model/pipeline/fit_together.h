#pragma once

/// Several RNICs at once: each is fitted alone, what they have in common becomes the prior of each.

#include "greynic/model/model.h"
#include "pipeline/fit.h"

namespace greynic::model {

/// report_pipeline under other priors than those of the table.
[[nodiscard]] Result<FitReport> report_pipeline_with(std::span<const Observation> observations,
                                                     const FitOptions& options,
                                                     const pipeline::Priors& priors);

/// Priors that the fits of the other devices suggest for device `left_out`: the spread of their
/// values about their mean, as far as their own uncertainty does not explain it, together with the
/// table's prior. One device tells little, many tell nearly all.
[[nodiscard]] pipeline::Priors pooled_priors(std::span<const pipeline::PipelineFit> fits,
                                             std::size_t left_out);

}  // namespace greynic::model
