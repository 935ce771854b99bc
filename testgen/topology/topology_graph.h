#pragma once

/// All ways that the packets of a topology can go, over all configurations at once: a graph whose
/// edges are taken when a literal holds. A configuration takes exactly one edge out of each node
/// that its packet reaches.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compile/constraint_compiler.h"
#include "topology/packet_walk.h"
#include "topology/topology_choices.h"

namespace greynic::testgen {

struct GraphEdge {
  std::optional<Literal> guard;  ///< empty: always taken
  std::uint32_t to = 0;
};

struct TopologyGraph {
  static constexpr std::uint32_t kGood = 0;   ///< the flow ended as it should
  static constexpr std::uint32_t kBad = 1;    ///< it did not
  std::vector<std::vector<GraphEdge>> edges;  ///< of each node
  std::vector<std::uint32_t> starts;
  /// The nodes at which packets with these headers are looked up, by (switch, table).
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::pair<std::uint32_t, Headers>>>
      lookups;
};

/// Builds the graph of all flows. kTooBig beyond a fixed number of packet states.
[[nodiscard]] Result<TopologyGraph> build_topology_graph(const TopologyChoices& choices,
                                                         const language::CoverModel& model,
                                                         ConstraintCompiler& compiler);

/// Nodes from which the good end cannot be reached become the bad end, and nodes with a single way
/// become the place that it leads to, so that nodes from which only one end can be reached are that
/// end. `watched` nodes stay while they can reach the good end. Nodes that are gone have no edges.
void simplify(TopologyGraph& graph, const std::vector<bool>& watched);

}  // namespace greynic::testgen
