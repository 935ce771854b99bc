#pragma once

/// The factors of a topology: which parameter of the model says what about which rule.

#include <memory>
#include <optional>
#include <vector>

#include "greynic/testgen/cover.h"
#include "greynic/testgen/topology.h"

namespace greynic::testgen {

struct RuleChoice {
  const TopologyRule* rule = nullptr;
  std::size_t at = 0;     ///< switch
  std::size_t table = 0;  ///< place in the switch's list of tables
  std::optional<std::uint32_t> installed;
  std::optional<std::uint32_t> match;
  std::optional<std::uint32_t> action;
  std::optional<language::Expr> when;

  /// Whether its match or its presence is up to the configuration.
  [[nodiscard]] bool is_chosen() const { return installed || match; }
};

struct TableChoice {
  std::vector<std::vector<RuleChoice>> groups;
  std::vector<std::vector<std::size_t>> orders;  ///< of the groups; one when the order is fixed
  std::optional<std::uint32_t> order;
};

struct TopologyChoices {
  std::shared_ptr<const Topology> topology;
  std::vector<std::vector<TableChoice>> tables;  ///< by switch and table
};

/// Adds the topology's parameters to the model.
[[nodiscard]] Result<TopologyChoices> add_topology_factors(
    std::shared_ptr<const Topology> topology, language::CoverModel& model,
    const language::ConstantLookup& constants);

/// Clauses that hold exactly where every flow ends as it should; see topology.h.
[[nodiscard]] Result<void> add_topology_clauses(const TopologyChoices& choices,
                                                const language::CoverModel& model, Space& space);

/// What is wrong with a row of the model, by walking every packet; names the rules.
[[nodiscard]] language::Breach walk_topology(const TopologyChoices& choices,
                                             const language::CoverModel& model,
                                             const std::vector<int>& row);

}  // namespace greynic::testgen
