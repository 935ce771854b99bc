#pragma once

/// Open vSwitch as a target that is measured: a private one. One that runs already is a RulesTarget
/// (rules_target.h).

#include <memory>
#include <optional>

#include "common/mask_traffic.h"
#include "common/rules_target.h"
#include "greynic/flows/flow_driver.h"
#include "greynic/target/target.h"
#include "ovs/ovs_driver.h"
#include "ovs/ovs_text.h"
#include "ovs/private_switch.h"

namespace greynic::flows {

/// One table for the reading front of few_masks is kept free. A packet's whole way is cached as one
/// megaflow, so that cutting tables saves nothing.
[[nodiscard]] inline LayoutLimits ovs_limits() {
  return {.last_table = kOvsLastTable - 1, .cuts_pay = false, .whole_fields = ovs_whole_fields()};
}

/// Measures on a switch of its own. Until a layout is applied, each configuration brings its rules
/// and packets (mask_traffic.h); from then on the layout's rules stay, the traffic given with it
/// is sent, and the mask and flow factors say nothing: `granted` holds what the switch then had.
class PrivateOvsTarget final : public target::Target, public NamedHeaders {
 public:
  [[nodiscard]] static Result<std::unique_ptr<target::Target>> open(const target::Spec& spec);

  target::Info info() const override;
  target::RuleHolder& rules() override { return *this; }
  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override;

  Result<void> check(const target::FittedLayout& layout,
                     const target::Placement& placement) override;
  Result<void> install(const target::FittedLayout& layout, const Traffic* traffic,
                       const target::Placement& placement) override;
  Result<void> check_traffic(const Traffic& traffic) const override;
  LayoutLimits limits() const override { return ovs_limits(); }
  Result<void> roll_back() override;

 protected:
  Layout fastest(Layout layout) const override;

 private:
  PrivateOvsTarget(std::string name, std::unique_ptr<PrivateSwitch> ovs);
  [[nodiscard]] Result<Observation> measure_request(const target::MeasureRequest& request);
  /// Rules, packets and caches as the configuration wants them; does nothing when they are so.
  [[nodiscard]] Result<void> set_up(const target::MeasureRequest& request);
  [[nodiscard]] Result<void> send(const Traffic& traffic, std::size_t payload_bytes,
                                  std::uint64_t seed);
  [[nodiscard]] Result<void> ensure_sinks(const RuleSet& rules);
  /// Measures and counters of what was timed.
  void fill(Observation& observation, const struct PacketTimes& times);

  std::string name_;
  std::unique_ptr<PrivateSwitch> ovs_;
  OvsDriver driver_;
  Offer offer_;  ///< of the driver: what `greynic devices` lists
  bool laid_out_ = false;
  Traffic traffic_;      ///< of the layout
  std::string running_;  ///< what set_up last made, as a key; empty: nothing
  std::optional<std::pair<bool, bool>> caches_;
  double round_packets_ = 0;  ///< of the traffic that runs: after so many it begins again
};

}  // namespace greynic::flows
