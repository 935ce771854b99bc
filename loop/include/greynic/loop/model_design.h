#pragma once

#include "greynic/model/design.h"
#include "greynic/testgen/plan.h"

namespace greynic::loop {

/// Designs that follow a law, for the campaigns that ask for one; `known`: a fitted model, or null.
inline testgen::ModelDesign design_by(const model::Model* known) {
  return [known](const Campaign& campaign, std::span<const Configuration> candidates,
                 std::uint64_t budget, std::uint64_t seed) {
    return model::choose_settings(campaign.design.law, candidates, budget,
                                  {.model = known, .seed = seed});
  };
}

}  // namespace greynic::loop
