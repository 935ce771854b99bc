#include "greynic/loop/by_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "greynic/optimizer/split.h"
#include "greynic/verify/verify.h"

namespace greynic::loop {
namespace {

std::string names_of(const std::vector<std::string>& models) {
  return fmt::format("{}", fmt::join(models, ", "));
}

optimizer::ForModel weighed(const RuleSet& rules, const Traffic& traffic, const Layout& layout,
                            const ModelLimits& model) {
  const Layout in_order = optimizer::layout_in_rule_order(rules);
  const auto held = [&](const Layout& of) {
    return optimizer::held_cost(of, traffic, model.limits, model.slow_path);
  };
  optimizer::ForModel given;
  given.made.before = optimizer::cost_of(in_order, traffic);
  given.made.after = optimizer::cost_of(optimizer::hardware_of(layout), traffic);
  given.made.rules_given = rules.rules.size();
  given.made.layout = layout;
  given.before = held(in_order);
  given.after = held(layout);
  return given;
}

/// The journal's layout for exactly these models, if it is right for the rules and fits the model.
const Layout* kept_for(const ModelLimits& model, const ByModelJournal& journal,
                       const RuleSet& rules, optimizer::Proof& proof) {
  const auto kept = std::ranges::find(journal.done, model.models, &ModelLayout::models);
  if (kept == journal.done.end()) return nullptr;
  const auto verdict = verify::verify(rules, kept->layout);
  if (!verdict || !verdict->equivalent) return nullptr;
  proof = {kept->layout.tables.size(), verdict->comparisons, verdict->regions};
  return &kept->layout;
}

}  // namespace

bool worth_layouts_by_model(const std::vector<ModelLimits>& models) {
  return models.size() > 1 ||
         (models.size() == 1 && models.front().limits.most_recipes != LayoutLimits::kNoLimit &&
          models.front().slow_path > 0.0);
}

Result<std::vector<LayoutByModel>> optimize_by_model(const RuleSet& rules, const Traffic& traffic,
                                                     const optimizer::OptimizeOptions& options,
                                                     const std::vector<ModelLimits>& models,
                                                     const ByModelJournal& journal,
                                                     const Talk& talk) {
  std::vector<LayoutByModel> all;
  for (const ModelLimits& model : models) {
    const std::string names = names_of(model.models);
    optimizer::Proof proof;
    if (const Layout* const kept = kept_for(model, journal, rules, proof)) {
      talk.line(fmt::format("for {}: the layout of before the interruption, proven again", names));
      all.push_back({model.models, weighed(rules, traffic, *kept, model)});
      all.back().made.made.proof = proof;
      continue;
    }
    talk.line(fmt::format("for {}: {}", names, to_string(model.limits)));
    auto made = optimizer::optimize_for(rules, traffic, options, model);
    if (!made) return made.error().while_doing("making the layout for " + names);
    all.push_back({model.models, std::move(*made)});
    if (!journal.keep) continue;
    if (auto kept = journal.keep(layouts_of(all)); !kept) return pass_on(kept);
  }
  return all;
}

std::vector<LayoutByModel> weighed_by_model(const RuleSet& rules, const Traffic& traffic,
                                            const ModelLayouts& layouts,
                                            const std::vector<ModelLimits>& models) {
  std::vector<LayoutByModel> all;
  for (const ModelLimits& model : models) {
    for (const ModelLayout& part : layouts) {
      LayoutByModel one;
      for (const std::string& name : model.models) {
        if (std::ranges::count(part.models, name) > 0) one.models.push_back(name);
      }
      if (one.models.empty()) continue;
      one.made = weighed(rules, traffic, part.layout, model);
      all.push_back(std::move(one));
    }
  }
  return all;
}

ModelLayouts layouts_of(const std::vector<LayoutByModel>& made) {
  ModelLayouts layouts;
  for (const LayoutByModel& one : made) layouts.push_back({one.models, one.made.made.layout});
  return layouts;
}

std::string to_text(const std::vector<LayoutByModel>& made) {
  std::size_t widest = 6;
  for (const LayoutByModel& one : made) widest = std::max(widest, names_of(one.models).size());
  std::string text = fmt::format("{:<{}} {:>20} {:>20} {:>9} {:>9} {:>7}\n", "models", widest,
                                 "matchers tried", "to software", "matchers", "rules", "tables");
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100.0 * share); };
  for (const LayoutByModel& one : made) {
    const auto& [layout, before, after] = one.made;
    text +=
        fmt::format("{:<{}} {:>20} {:>20} {:>9} {:>9} {:>7}\n", names_of(one.models), widest,
                    fmt::format("{:.2f} -> {:.2f}", before.tried, after.tried),
                    fmt::format("{} -> {}", percent(before.slow_share), percent(after.slow_share)),
                    layout.after.matchers, layout.after.rules, layout.after.tables);
  }
  return text;
}

nlohmann::json to_json(const std::vector<LayoutByModel>& made) {
  const auto side = [](const optimizer::HeldCost& cost) {
    return nlohmann::json{{"matchers_tried_mean", cost.tried}, {"software_share", cost.slow_share}};
  };
  nlohmann::json list = nlohmann::json::array();
  for (const LayoutByModel& one : made) {
    const optimizer::LayoutCost& cost = one.made.made.after;
    list.push_back({{"names", one.models},
                    {"before", side(one.made.before)},
                    {"after", side(one.made.after)},
                    {"tables", cost.tables},
                    {"matchers", cost.matchers},
                    {"rules", cost.rules},
                    {"seconds", one.made.made.seconds}});
  }
  return list;
}

}  // namespace greynic::loop
