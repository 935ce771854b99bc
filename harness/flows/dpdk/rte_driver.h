#pragma once

/// rte_flow on a port that DPDK drives. The port belongs to this process: rules go when it ends,
/// so nothing has to be put back after a crash, and rte_flow cannot be asked what it holds, so list
/// gives what it accepted.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dpdk/rte_calls.h"
#include "dpdk/rte_path.h"
#include "dpdk/rte_port.h"
#include "dpdk/rte_rules.h"
#include "greynic/flows/flow_driver.h"

namespace greynic::flows {

class RteDriver final : public FlowDriver {
 public:
  /// A port as DPDK names devices: "net_tap0,iface=tap7", "0000:03:00.0". One a process, for DPDK
  /// can be started only once. kMissing with DPDK's own words.
  [[nodiscard]] static Result<std::unique_ptr<RteDriver>> open(const std::string& device);
  /// `owned` is closed when the driver goes; empty for a port that is somebody else's.
  RteDriver(const RteCalls& calls, std::uint16_t port, std::string driver_name,
            std::unique_ptr<RtePath> path, std::unique_ptr<RtePort> owned = nullptr);

  /// Every field exact and masked, every action, the last group and priority: checked, created and
  /// destroyed again. A note says by which path rules go in.
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
  /// Rules as the port is given them; refused where its driver would make others of them.
  [[nodiscard]] Result<RteRule> made_of(const FlowRule& rule) const;
  [[nodiscard]] Result<std::vector<RteRule>> made_of(const RuleSet& rules) const;

  const RteCalls& calls_;
  std::uint16_t number_;
  std::string driver_name_;
  std::unique_ptr<RtePort> port_;  ///< outlives the path, whose last calls go to it
  std::unique_ptr<RtePath> path_;
  std::vector<Installed> rules_;
  std::vector<std::vector<FlowRule>> remembered_;  ///< by snapshots; a snapshot is an index
};

}  // namespace greynic::flows
