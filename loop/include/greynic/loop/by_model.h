#pragma once

/// A layout for each model of a fleet: made one after the other, proven, and told of beside each other.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "greynic/loop/talk.h"
#include "greynic/optimizer/for_model.h"

namespace greynic::loop {

struct LayoutByModel {
  std::vector<std::string> models;  ///< that take it
  optimizer::ForModel made;
};

/// Whether layouts for these models are made one by one: there are several kinds, or software takes
/// what an only one has no recipe for.
[[nodiscard]] bool worth_layouts_by_model(const std::vector<ModelLimits>& models);

/// What an earlier run left of it; parts come as they are made.
struct ByModelJournal {
  ModelLayouts done;
  std::function<Result<void>(const ModelLayouts& done)> keep;  ///< empty: nothing is kept
};

/// Layouts of the journal that are still right for the rules are taken, all others made. Each has been
/// proven when it comes back.
[[nodiscard]] Result<std::vector<LayoutByModel>> optimize_by_model(
    const RuleSet& rules, const Traffic& traffic, const optimizer::OptimizeOptions& options,
    const std::vector<ModelLimits>& models, const ByModelJournal& journal, const Talk& talk);

/// Layouts that somebody else made, with what they cost each model; not proven.
[[nodiscard]] std::vector<LayoutByModel> weighed_by_model(const RuleSet& rules,
                                                          const Traffic& traffic,
                                                          const ModelLayouts& layouts,
                                                          const std::vector<ModelLimits>& models);

[[nodiscard]] ModelLayouts layouts_of(const std::vector<LayoutByModel>& made);

/// A line for each: what its packets try and which share goes to software, before and after.
[[nodiscard]] std::string to_text(const std::vector<LayoutByModel>& made);
/// docs/formats/optimization.md, `models`.
[[nodiscard]] nlohmann::json to_json(const std::vector<LayoutByModel>& made);

}  // namespace greynic::loop
