#pragma once

/// Which settings to measure next, so that a law is known best for what the measurements cost:
/// D-optimal design. Each setting adds information about the parameters (the outer product of the
/// law's gradient over the noise); settings are taken one after the other, each the one that raises
/// the determinant of the information most. Without a model the gradients are those of the law at
/// several draws from its priors, so that the choice serves RNICs nobody has seen; with a fitted
/// model they are those at its values, and what it knows already counts.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/configuration.h"
#include "greynic/model/model.h"

namespace greynic::model {

struct DesignOptions {
  const Model* model = nullptr;  ///< what is known already; null: the law's priors
  std::uint64_t seed = 1;        ///< of the draws from the priors
  int draws = 6;
};

/// At most `budget` of `candidates`, in the order in which to measure them. kBadInput when the law
/// is not `pipeline`, when `model` is of another law, or when a candidate has a value no law takes.
[[nodiscard]] Result<std::vector<Configuration>> choose_settings(
    std::string_view law, std::span<const Configuration> candidates, std::uint64_t budget,
    const DesignOptions& options = {});

/// A campaign over the domain in which `model` was fitted, to be planned by choose_settings: each
/// factor that varied, with up to seven levels between its ends. kBadInput where nothing varied.
[[nodiscard]] Result<Campaign> campaign_for(const Model& model, std::uint64_t budget);

}  // namespace greynic::model
