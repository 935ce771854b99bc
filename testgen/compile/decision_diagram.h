#pragma once

/// A constraint as a decision diagram over its parameters. A node stands for what is left of the
/// constraint after some parameters are set; partial settings that leave the same rest share a
/// node, so sums and products of many parameters stay small.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "greynic/language/cover_model.h"

namespace greynic::testgen {

struct DiagramNode {
  std::uint32_t parameter = 0;
  std::vector<std::uint32_t> child;  ///< node for each level of the space
};

struct Diagram {
  static constexpr std::uint32_t kFalse = 0;
  static constexpr std::uint32_t kTrue = 1;
  std::vector<DiagramNode> nodes;  ///< children before parents; 0 and 1 are the terminals
  std::uint32_t root = kTrue;
};

/// Builds the diagram of a normal form, parameters in order of first appearance. Empty when it
/// needs more than `most_nodes`.
[[nodiscard]] std::optional<Diagram> build_diagram(const language::CoverModel& model,
                                                   const language::Expr& normal,
                                                   std::size_t most_nodes);

}  // namespace greynic::testgen
