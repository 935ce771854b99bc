#pragma once

/// Open vSwitch as a rule driver: OpenFlow through ovs-ofctl bundles (all or nothing), ports
/// through OVSDB. Works on greynic's own switch and on one that runs already.

#include <functional>

#include "common/journal.h"
#include "greynic/flows/flow_driver.h"
#include "ovs/ovs_text.h"

namespace greynic::flows {

class OvsDriver final : public FlowDriver {
 public:
  /// `management_socket`: where the bridge speaks OpenFlow, e.g. /run/openvswitch/br0.mgmt.
  /// `ports` is asked whenever names are turned into numbers.
  OvsDriver(std::string management_socket, std::function<Result<PortNumbers>()> ports,
            Journal journal);

  Result<Offer> probe() override;
  Result<void> check(const RuleSet& rules) override;
  Result<RuleSet> list() override;
  Result<std::vector<RuleCount>> counters() override;

 protected:
  Result<std::string> snapshot() override;
  Result<void> restore(const std::string& snapshot) override;
  Result<void> install(const RuleSet& rules) override;

 private:
  [[nodiscard]] Result<std::string> ofctl(std::vector<std::string> words, std::string input = "");
  /// Replaces all flows by these lines, in one bundle.
  [[nodiscard]] Result<void> replace(std::string lines);

  std::string bridge_;  ///< "unix:/path"
  std::function<Result<PortNumbers>()> ports_;
};

}  // namespace greynic::flows
