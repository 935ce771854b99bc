#pragma once

/// What RDMA itself forbids, in the constraint language over the factor table's names. A campaign
/// never has to say these; the plan applies each rule that reads a factor of the campaign, with the
/// table's standard values for factors that the campaign leaves alone.

#include <span>
#include <string_view>

namespace greynic::testgen {

struct RdmaRule {
  std::string_view constraint;
  std::string_view why;
};

[[nodiscard]] std::span<const RdmaRule> rdma_rules();

}  // namespace greynic::testgen
