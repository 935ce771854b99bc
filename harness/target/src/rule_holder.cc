#include "greynic/target/rule_holder.h"

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
