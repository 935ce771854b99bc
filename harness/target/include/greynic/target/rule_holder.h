#pragma once

/// What holds rules, apart from what drives traffic (target.h): a device, or a joined part of one.
///
/// A layout is fitted to the holder first and then checked, installed and verified in that form:
///
///     const FittedLayout fitted = holder.fit(layout);
///     verify(rules, fitted.layout());                  // what goes in is what is proven
///     holder.install(fitted, &traffic, placement);
///
/// Only fit makes a FittedLayout, and nothing else can be installed, so every command installs the
/// same rules for the same layout.

#include <cstdint>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"
#include "greynic/core/layout_limits.h"
#include "greynic/core/result.h"

namespace greynic::target {

/// Where a layout is installed: which mask sequence it replaces.
struct Placement {
  Hop hop = Hop::kServerDecap;
};

/// A rule that a device holds, and what went through it since it was installed.
struct CountedRule {
  FlowRule rule;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// A layout in a holder's words and form; for fleets perhaps one for each model.
class FittedLayout {
 public:
  /// That of the first models, which is the only one unless models have their own.
  [[nodiscard]] const Layout& layout() const { return parts_.front().layout; }
  [[nodiscard]] const ModelLayouts& parts() const { return parts_; }
  [[nodiscard]] bool by_model() const { return !parts_.front().models.empty(); }

 private:
  friend class RuleHolder;
  explicit FittedLayout(ModelLayouts parts) : parts_(std::move(parts)) {}
  ModelLayouts parts_;  ///< at least one
};

enum class LayoutForm {
  kFastest,    ///< the equivalent form that this device searches fastest
  kAsWritten,  ///< matchers and tables stay; only headers that the device insists on are named
};

class RuleHolder {
 public:
  virtual ~RuleHolder() = default;

  /// The rules as the device wants them written, with the headers named that they take for granted:
  /// what a layout is made of and verified against. Most devices take rules as they are.
  [[nodiscard]] virtual RuleSet spell_out(RuleSet rules) const { return rules; }
  /// The layout that the device is given for this one: ranges are written out where it matches none.
  /// Fitting a fitted layout changes nothing.
  [[nodiscard]] FittedLayout fit(const Layout& layout,
                                 LayoutForm form = LayoutForm::kFastest) const;
  /// The same for each model by its own limits. `layouts` are such that takes() says yes.
  [[nodiscard]] FittedLayout fit(const ModelLayouts& layouts,
                                 LayoutForm form = LayoutForm::kFastest) const;

  /// Checks that install would be accepted, and changes nothing.
  [[nodiscard]] virtual Result<void> check(const FittedLayout& layout,
                                           const Placement& placement) = 0;
  /// Installs a layout as one transaction: all of it or, with an error, nothing. The traffic, when
  /// given, is what later measurements send through it.
  [[nodiscard]] virtual Result<void> install(const FittedLayout& layout, const Traffic* traffic,
                                             const Placement& placement) = 0;
  /// Returns to the rules that were there before the first install.
  [[nodiscard]] virtual Result<void> roll_back() = 0;

  /// Whether this traffic can be sent through the rules, asked before any work is done on them.
  /// kUnsupported names the fields that stand against it, kTooBig the number. Yes for devices that
  /// have it sent by others.
  [[nodiscard]] virtual Result<void> check_traffic(const Traffic& /*traffic*/) const { return {}; }
  /// What the optimizer may use of the device; everything, unless a device says otherwise.
  [[nodiscard]] virtual LayoutLimits limits() const { return {}; }
  /// Of a fleet: its models, those together that take the same layouts. Empty: layouts are for all.
  [[nodiscard]] virtual std::vector<ModelLimits> models() const { return {}; }
  /// Whether tables of software are looked up behind the device's own.
  [[nodiscard]] virtual bool has_slow_path() const { return false; }
  /// kUnsupported for a layout that is split between hardware and software, where there is no such
  /// way. `name`: of the layout, for the message.
  [[nodiscard]] Result<void> takes(const Layout& layout, const std::string& name) const;
  /// The same, and kBadInput where layouts name a model that is not there, or leave one out.
  [[nodiscard]] Result<void> takes(const ModelLayouts& layouts, const std::string& name) const;
  /// The rules that the device holds, whoever installed them, with its own counters. kUnsupported
  /// where rules go with the process that installed them.
  [[nodiscard]] virtual Result<std::vector<CountedRule>> counted_rules();

 protected:
  /// spell_out for a layout, whose tables and order stay.
  [[nodiscard]] virtual Layout spelled_out(const Layout& layout) const { return layout; }
  /// The equivalent layout that the device searches fastest. Open vSwitch, which makes its own
  /// masks from what rules look at, gets another one than it was asked for.
  [[nodiscard]] virtual Layout fastest(Layout layout) const { return layout; }

 private:
  [[nodiscard]] Layout fitted(const Layout& layout, bool ranges, LayoutForm form) const;
};

/// For targets without rules: takes every layout as it is and refuses to install it (kUnsupported).
[[nodiscard]] RuleHolder& no_rules();

}  // namespace greynic::target
