#pragma once

/// A device whose rules are changed and read through a FlowDriver, and that is not measured here:
/// joined behind a target with traffic ("verbs:...+tc:eth0") it holds the rules.

#include <memory>
#include <string>

#include "common/named_headers.h"
#include "greynic/flows/flow_driver.h"
#include "greynic/target/target.h"

namespace greynic::flows {

/// What every holder here shares: rules need their headers named.
class NamedHeaders : public target::RuleHolder {
 public:
  RuleSet spell_out(RuleSet rules) const override { return with_headers(std::move(rules)); }

 protected:
  Layout spelled_out(const Layout& layout) const override { return with_headers(layout); }
};

class RulesTarget final : public target::Target, public NamedHeaders {
 public:
  RulesTarget(target::Info info, std::unique_ptr<FlowDriver> driver, LayoutLimits limits);

  target::Info info() const override { return info_; }
  target::RuleHolder& rules() override { return *this; }
  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override;

  Result<void> check(const target::FittedLayout& layout, const target::Placement&) override {
    return driver_->check(rules_of(layout.layout()));
  }
  Result<void> install(const target::FittedLayout& layout, const Traffic*,
                       const target::Placement&) override {
    return driver_->apply(rules_of(layout.layout()));
  }
  Result<void> roll_back() override { return driver_->roll_back(); }
  LayoutLimits limits() const override { return limits_; }
  Result<std::vector<target::CountedRule>> counted_rules() override { return driver_->counters(); }

 private:
  target::Info info_;
  std::unique_ptr<FlowDriver> driver_;
  LayoutLimits limits_;
};

/// What a driver offers as rows for people (target::Info::facts).
[[nodiscard]] std::vector<std::vector<std::string>> facts_of(const Offer& offer);

}  // namespace greynic::flows
