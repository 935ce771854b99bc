#pragma once

/// rte_flow on a port that DPDK drives. The port belongs to this process: rules go when it ends,
/// so nothing has to be put back after a crash, and rte_flow cannot be asked what it holds, so list
/// gives what it accepted.

#include <rte_flow.h>

#include <memory>
#include <string>
#include <vector>

#include "greynic/flows/flow_driver.h"

namespace greynic::flows {

class RteDriver final : public FlowDriver {
 public:
  /// A port as DPDK names devices: "net_tap0,iface=tap7", "0000:03:00.0". One a process, for DPDK
  /// can be started only once. kMissing with DPDK's own words.
  [[nodiscard]] static Result<std::unique_ptr<RteDriver>> open(const std::string& device);
  ~RteDriver() override;

  /// Every field exact and masked, every action, the last group and priority: validated, created
  /// and destroyed again.
  Result<Offer> probe() override;
  Result<void> check(const RuleSet& rules) override;
  Result<RuleSet> list() override;
  /// Packets of rules that have a count action where the port can be asked for it; else zero.
  Result<std::vector<RuleCount>> counters() override;

 protected:
  Result<std::string> snapshot() override;
  Result<void> restore(const std::string& text) override;
  Result<void> install(const RuleSet& rules) override;

 private:
  struct Installed {
    rte_flow* handle;
    FlowRule rule;
  };
  explicit RteDriver(std::uint16_t port);
  [[nodiscard]] Result<void> remove_all();

  std::uint16_t port_;
  std::vector<Installed> rules_;
  std::vector<std::vector<FlowRule>> remembered_;  ///< by snapshots; a snapshot is an index
};

}  // namespace greynic::flows
