#include "greynic/target/rule_holder.h"

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

FittedLayout RuleHolder::fit(const Layout& layout, LayoutForm form) const {
  Layout spelled = spelled_out(limits().most_ranges > 0 ? layout : without_ranges(layout));
  return FittedLayout(form == LayoutForm::kFastest ? fastest(std::move(spelled))
                                                   : std::move(spelled));
}

Result<void> RuleHolder::takes(const Layout& layout, const std::string& name) const {
  const bool split = std::ranges::any_of(layout.tables, &LayoutTable::software);
  if (!split || has_slow_path()) return {};
  return fail(ErrorCode::kUnsupported,
              name +
                  ": is split between hardware and a slow path, of which this target takes one "
                  "alone; `optimize --hardware N --as FORM` writes it as commands");
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
