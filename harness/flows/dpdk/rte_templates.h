#pragma once

/// Rules as template tables: one pattern template for each mask (with the headers around it), one
/// actions template for each list of kinds of actions, and one table for each pattern template,
/// group and priority, so that a port searches as few tables as there are masks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpdk/rte_calls.h"
#include "dpdk/rte_rules.h"
#include "greynic/core/result.h"

namespace greynic::flows {

/// Templates and tables on a port; they go with it. Rules must be out of the tables before.
class RteTemplates {
 public:
  /// Where a rule belongs. A table has one pattern template, whose index is therefore 0.
  struct Place {
    rte_flow_template_table* table;
    std::uint8_t actions;  ///< index of the actions template in the table
  };

  /// kUnsupported names the first rule whose mask, actions or table the port refuses.
  [[nodiscard]] static Result<std::unique_ptr<RteTemplates>> create(const RteCalls& calls,
                                                                    std::uint16_t port,
                                                                    std::span<const RteRule> rules);
  ~RteTemplates();
  RteTemplates(const RteTemplates&) = delete;
  RteTemplates& operator=(const RteTemplates&) = delete;

  /// By rules, in the order in which create was given them.
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }

 private:
  struct Table;
  RteTemplates(const RteCalls& calls, std::uint16_t port) : calls_(calls), port_(port) {}
  [[nodiscard]] Result<rte_flow_pattern_template*> pattern_for(const RteRule& rule);
  [[nodiscard]] Result<rte_flow_actions_template*> actions_for(const RteRule& rule);
  [[nodiscard]] Result<void> create_table(std::span<const RteRule> rules, const Table& table);

  const RteCalls& calls_;
  std::uint16_t port_;
  std::vector<rte_flow_template_table*> tables_;
  std::vector<rte_flow_pattern_template*> patterns_;
  std::vector<rte_flow_actions_template*> actions_;
  std::vector<Place> places_;
};

}  // namespace greynic::flows
