#pragma once

/// A device whose rules are changed and read through a FlowDriver, and that is not measured here:
/// joined behind a target with traffic ("verbs:...+tc:eth0") it holds the rules.

#include <functional>
#include <memory>
#include <string>

#include "greynic/flows/flow_driver.h"
#include "greynic/target/target.h"

namespace greynic::flows {

class RulesTarget final : public target::Target {
 public:
  RulesTarget(target::Info info, std::unique_ptr<FlowDriver> driver, target::LayoutRoom room);

  target::Info info() const override { return info_; }
  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override;
  Result<void> apply(const Layout& layout, const Traffic* traffic,
                     const target::Placement& placement) override;
  Result<void> check(const Layout& layout, const target::Placement& placement) override;
  target::LayoutRoom layout_room() const override { return room_; }
  RuleSet spell_out(RuleSet rules) const override;
  Result<void> roll_back() override;
  Result<std::vector<target::CountedRule>> rules() override { return driver_->counters(); }

 private:
  target::Info info_;
  std::unique_ptr<FlowDriver> driver_;
  target::LayoutRoom room_;
};

/// A layout as rules with their headers named, as every driver here takes them.
[[nodiscard]] RuleSet device_rules_of(const Layout& layout);

/// What a driver offers as rows for people (target::Info::facts).
[[nodiscard]] std::vector<std::vector<std::string>> facts_of(const Offer& offer);

}  // namespace greynic::flows
