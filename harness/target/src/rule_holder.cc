#include "greynic/target/rule_holder.h"

#include <fmt/format.h>

#include <algorithm>

namespace greynic::target {
namespace {

class NoRules final : public RuleHolder {
 public:
  Result<void> check(const FittedLayout&, const Placement&) override { return refuse(); }
  Result<void> install(const FittedLayout&, const Traffic*, const Placement&) override {
    return refuse();
  }
  Result<void> roll_back() override { return {}; }

 private:
  static tl::unexpected<Error> refuse() {
    return fail(ErrorCode::kUnsupported,
                "this target holds no rules; name one that does, such as flows:tc:INTERFACE");
  }
};

}  // namespace

Layout RuleHolder::fitted(const Layout& layout, bool ranges, LayoutForm form) const {
  Layout spelled = spelled_out(ranges ? layout : without_ranges(layout));
  return form == LayoutForm::kFastest ? fastest(std::move(spelled)) : std::move(spelled);
}

FittedLayout RuleHolder::fit(const Layout& layout, LayoutForm form) const {
  return FittedLayout({{{}, fitted(layout, limits().most_ranges > 0, form)}});
}

FittedLayout RuleHolder::fit(const ModelLayouts& layouts, LayoutForm form) const {
  if (layouts.size() == 1 && layouts.front().models.empty()) {
    return fit(layouts.front().layout, form);
  }
  const std::vector<ModelLimits> all = models();
  const auto compares_ranges = [&](const std::string& name) {
    return std::ranges::any_of(all, [&](const ModelLimits& some) {
      return some.limits.most_ranges > 0 && std::ranges::count(some.models, name) > 0;
    });
  };
  ModelLayouts made;
  for (const ModelLayout& part : layouts) {
    const bool ranges = std::ranges::all_of(part.models, compares_ranges);
    made.push_back({part.models, fitted(part.layout, ranges, form)});
  }
  return FittedLayout(std::move(made));
}

Result<void> RuleHolder::takes(const Layout& layout, const std::string& name) const {
  const bool split = std::ranges::any_of(layout.tables, &LayoutTable::software);
  if (!split || has_slow_path()) return {};
  return fail(ErrorCode::kUnsupported,
              name +
                  ": is split between hardware and a slow path, of which this target takes one "
                  "alone; `optimize --hardware N --as FORM` writes it as commands");
}

Result<void> RuleHolder::takes(const ModelLayouts& layouts, const std::string& name) const {
  std::vector<std::string> there;
  for (const ModelLimits& some : models()) {
    there.insert(there.end(), some.models.begin(), some.models.end());
  }
  std::vector<std::string> missing = there;
  for (const ModelLayout& part : layouts) {
    if (auto taken = takes(part.layout, name); !taken) return taken;
    if (part.models.empty()) missing.clear();
    for (const std::string& model : part.models) {
      if (std::ranges::count(there, model) == 0) {
        return fail(ErrorCode::kBadInput,
                    there.empty()
                        ? fmt::format("{}: has a layout for each model of a fleet ({}), and this "
                                      "target is none; name the fleet it was made for",
                                      name, model)
                        : fmt::format("{}: has a layout for '{}', which this fleet has not; it has "
                                      "{}",
                                      name, model, fmt::join(there, ", ")));
      }
      std::erase(missing, model);
    }
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::kBadInput,
              fmt::format("{}: has no layout for {}; `optimize --for` this target makes one for "
                          "each model",
                          name, fmt::join(missing, ", ")));
}

Result<std::vector<CountedRule>> RuleHolder::counted_rules() {
  return fail(ErrorCode::kUnsupported,
              "this target holds no rules beyond this process; flows:tc:INTERFACE and "
              "ovs:BRIDGE?rundir=FOLDER do");
}

RuleHolder& no_rules() {
  static NoRules none;
  return none;
}

}  // namespace greynic::target
