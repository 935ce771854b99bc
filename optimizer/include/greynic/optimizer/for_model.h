#pragma once

/// A layout for devices of one model, by their own limits.
///
/// Where all matchers have a place, it is that of optimize(). A device of few lookup recipes may have
/// none for most of them. Then its packets pay for software, and what counts is which packets the
/// recipes are spent on:
///   1. masks whose rules decide most of the packets for each recipe that they take, with what must
///      come before these rules;
///   2. single flows of all other rules, under a mask that the device has anyway, or under one of all
///      bits that rules look at;
///   3. a last entry that sends all else to software: a table with all rules.
///
/// Example: 64 recipes, and 30 masks of 3 recipes each. 20 of them fit beside the last entry; flows of
/// the other ten go where their rule's bits are looked at.
///
/// Of this layout, that of optimize() where it keeps to the limits, and the rules in their order, as
/// far as recipes go, the one that costs least is taken. Each is proven, with the software's table.

#include "greynic/core/layout_limits.h"
#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

/// What a layout costs a device that sends to software what it has no recipe for.
struct HeldCost {
  double tried = 0.0;       ///< matchers of the device, mean over the packets
  double slow_share = 0.0;  ///< of the packets that go to software
  double cost = 0.0;        ///< tried, and the price of software for these
};

/// Matchers are held in the layout's order until recipes are used up.
[[nodiscard]] HeldCost held_cost(const Layout& layout, const Traffic& traffic,
                                 const LayoutLimits& limits, double slow_path);

struct ForModel {
  OptimizedLayout made;  ///< `before` and `after` as if all matchers were held
  HeldCost before;       ///< of the rules in their order
  HeldCost after;
};

/// `options.limits` are not used. Errors: those of optimize(); kTooBig names what is missing where the
/// device has no software behind it.
[[nodiscard]] Result<ForModel> optimize_for(const RuleSet& rules, const Traffic& traffic,
                                            const OptimizeOptions& options,
                                            const ModelLimits& model);

}  // namespace greynic::optimizer
