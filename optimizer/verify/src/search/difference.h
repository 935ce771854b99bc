#pragma once

/// The search for a packet that two first-match lists treat differently.

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "greynic/core/result.h"
#include "src/places.h"
#include "src/rule_index.h"
#include "src/search/diagrams.h"
#include "src/step_finder.h"

namespace greynic::verify {

struct Difference {
  Cube where;              ///< every packet in it shows the difference
  std::uint32_t by_rules;  ///< effects
  std::uint32_t by_layout;
};

/// What a search may spend. A comparison is one of two rules, or of a rule and a region.
struct SearchLimits {
  std::uint64_t regions_left;
  std::uint64_t comparisons_left;
  std::function<void(double)> progress;
};

/// Compares the two sides of a pool in one region after another.
///
/// Both sides are written as diagrams of what the region leaves open. Two that are one node are
/// alike. Others are cut by what is asked of one header field, until each is one node, or two leaves
/// that differ. Pairs that were found to be alike are remembered: regions that leave the same open
/// are looked at once, and that is what most of them do. Fields that most rules look at come first,
/// always in the same order, so that the same is left again and again.
class DifferenceSearch {
 public:
  DifferenceSearch(const Pool& pool, const Places& places);

  /// Empty when both sides treat every packet of the region alike. kTooBig when the regions or the
  /// comparisons are used up.
  [[nodiscard]] Result<std::optional<Difference>> find(const Cube& region, SearchLimits& limits);

 private:
  NodeId rules_in(const Cube& region);
  NodeId layout_in(const Cube& region);
  bool alike(NodeId rules, NodeId layout, double share);
  bool spend();
  bool settled(double share);
  void tidy();
  std::vector<Cube> cuts(NodeId rules, NodeId layout);

  const Pool& pool_;
  const Places& places_;
  RuleIndex rules_;
  StepFinder steps_;
  std::vector<CubeBits> fields_;  ///< in the order in which they are asked for
  Diagrams diagrams_;
  std::size_t most_nodes_;                   ///< before the diagrams are tidied
  std::unordered_set<std::uint64_t> known_;  ///< pairs that are alike
  std::vector<NodeId> open_;                 ///< pairs that are looked at
  std::vector<std::uint32_t> reached_;       ///< by place: the region that reached it
  std::vector<NodeId> node_of_;              ///< by place, in that region
  std::uint32_t region_number_ = 0;
  std::uint64_t comparisons_ = 0;  ///< not yet spent
  std::uint64_t visits_ = 0;       ///< of nodes, that are spent
  SearchLimits* limits_ = nullptr;
  Cube region_;
  Difference found_{};
  std::optional<Error> failure_;
  double settled_ = 0.0;
  double told_ = 0.0;
};

}  // namespace greynic::verify
