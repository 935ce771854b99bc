#pragma once

/// tc flower on the ingress of a network interface: tables are chains, matchers are priorities.

#include <string>

#include "common/journal.h"
#include "greynic/flows/flow_driver.h"
#include "greynic/os/netlink.h"

namespace greynic::flows {

/// Where filters are to run: TCA_CLS_FLAGS_SKIP_HW, TCA_CLS_FLAGS_SKIP_SW, or neither.
enum class TcPlace { kBoth, kSoftwareOnly, kHardwareOnly };

class TcDriver final : public FlowDriver {
 public:
  /// Needs the interface in the calling thread's network namespace; makes its clsact queueing
  /// discipline when the first rules are applied. kMissing when there is no such interface.
  [[nodiscard]] static Result<std::unique_ptr<TcDriver>> open(const std::string& interface,
                                                              TcPlace place, Journal journal);

  /// Which keys and actions the kernel takes, found by adding one filter with each and taking it
  /// away again.
  Result<Offer> probe() override;
  Result<void> check(const RuleSet& rules) override;
  Result<RuleSet> list() override;
  Result<std::vector<RuleCount>> counters() override;

 protected:
  Result<std::string> snapshot() override;
  Result<void> restore(const std::string& text) override;
  Result<void> install(const RuleSet& rules) override;

 private:
  TcDriver(os::NetlinkSocket socket, int interface_number, TcPlace place, Journal journal);
  /// One message for each rule, in order.
  [[nodiscard]] Result<std::vector<os::NetlinkMessage>> filters(const RuleSet& rules);
  /// The filters under a parent (ingress, egress), without what trials left.
  [[nodiscard]] Result<std::vector<os::NetlinkAnswer>> dump(std::uint32_t parent);
  [[nodiscard]] Result<bool> has_ingress();
  [[nodiscard]] Result<void> make_ingress();
  [[nodiscard]] Result<void> remove_ingress();
  [[nodiscard]] Result<void> remove_all();

  os::NetlinkSocket socket_;
  int interface_;
  TcPlace place_;
};

}  // namespace greynic::flows
