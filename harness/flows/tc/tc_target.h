#pragma once

/// tc flower as a target that is measured: rules on one end of a veth pair that belongs to greynic
/// alone, packets from the other.

#include <memory>
#include <string>

#include "common/rules_target.h"
#include "greynic/target/target.h"
#include "tc/tc_driver.h"
#include "tc/tc_flower.h"
#include "tc/veth_wire.h"

namespace greynic::flows {

/// Small tables behind jumps are chains, which a packet enters by goto and does not come back from.
[[nodiscard]] inline LayoutLimits tc_limits() {
  return {.last_table = 0xffff, .whole_fields = tc_whole_fields()};
}

class TcTarget final : public target::Target, public NamedHeaders {
 public:
  [[nodiscard]] static Result<std::unique_ptr<target::Target>> open(const target::Spec& spec,
                                                                    TcPlace place);

  target::Info info() const override;
  target::RuleHolder& rules() override { return *this; }
  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override;

  Result<void> check(const target::FittedLayout& layout,
                     const target::Placement& placement) override;
  Result<void> install(const target::FittedLayout& layout, const Traffic* traffic,
                       const target::Placement& placement) override;
  Result<void> check_traffic(const Traffic& traffic) const override;
  LayoutLimits limits() const override { return tc_limits(); }
  Result<void> roll_back() override;

 private:
  TcTarget(std::string name, std::unique_ptr<VethWire> wire, std::unique_ptr<TcDriver> driver);
  [[nodiscard]] Result<Observation> measure_request(const target::MeasureRequest& request);
  [[nodiscard]] Result<void> set_up(const target::MeasureRequest& request);
  [[nodiscard]] Result<void> ensure_sinks(const RuleSet& rules);

  std::string name_;
  std::unique_ptr<VethWire> wire_;
  std::unique_ptr<TcDriver> driver_;
  bool laid_out_ = false;
  Traffic traffic_;            ///< of the layout
  std::string ready_;          ///< what set_up last made, as a key; empty: nothing
  std::vector<Frame> frames_;  ///< of it
  std::size_t preferences_ = 0;
  Offer offer_;
};

/// Why tc flower cannot be used here; empty when it can.
struct TcObstacle {
  std::string why_not;
  std::string remedy;
};
[[nodiscard]] TcObstacle tc_obstacle();

}  // namespace greynic::flows
