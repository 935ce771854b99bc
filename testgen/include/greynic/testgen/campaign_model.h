#pragma once

/// A campaign as a CoverModel, and rows of it as configurations.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/language/cover_model.h"
#include "greynic/testgen/plan.h"

namespace greynic::testgen {

struct Topology;

struct CampaignModel {
  language::CoverModel model;
  /// The value of each level of each parameter; parameters are the campaign's factors in order,
  /// then those of its topology.
  std::vector<std::vector<FactorValue>> values;
  std::vector<std::string> notes;  ///< for people: rules that joined, levels left out and why
};

/// Reads the campaign's topology; null when it has none.
[[nodiscard]] Result<std::shared_ptr<const Topology>> topology_of(const Campaign& campaign);

/// Factors become parameters; constraints, forbidden combinations, RDMA's own rules, the topology
/// and the device's limits become constraints. Errors: kBadInput names the file and the place in
/// it; kInfeasible when the device offers none of a factor's levels.
[[nodiscard]] Result<CampaignModel> model_of(const Campaign& campaign, const DeviceLimits* device,
                                             const std::shared_ptr<const Topology>& topology);

/// The level of a parameter with this value; -1: there is none.
[[nodiscard]] int level_of(const CampaignModel& model, std::uint32_t parameter,
                           const FactorValue& value);

/// Levels (-1: absent) as a configuration; absent factors are not set.
[[nodiscard]] Configuration to_configuration(const CampaignModel& model,
                                             const std::vector<int>& levels);

/// Where the campaign's topology lies: as written, from where we are or from a folder above the
/// campaign's file, absolute when it is there; empty without a topology.
[[nodiscard]] std::string topology_path(const Campaign& campaign);

}  // namespace greynic::testgen
