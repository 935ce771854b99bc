#include "common/rules_target.h"

#include <fmt/core.h>

namespace greynic::flows {
namespace {

std::string_view name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "forward";
    case ActionKind::kDrop:
      return "drop";
    case ActionKind::kJump:
      return "jump";
    case ActionKind::kSetField:
      return "set_field";
    case ActionKind::kVxlanEncap:
      return "vxlan_encap";
    case ActionKind::kVxlanDecap:
      return "vxlan_decap";
    case ActionKind::kPushVlan:
      return "push_vlan";
    case ActionKind::kPopVlan:
      return "pop_vlan";
    case ActionKind::kCount:
      return "count";
    case ActionKind::kMeter:
      return "meter";
    case ActionKind::kOther:
      return "words of its own";
  }
  return "";
}

}  // namespace

std::vector<std::vector<std::string>> facts_of(const Offer& offer) {
  std::vector<std::vector<std::string>> rows;
  for (const OfferedField& field : offer.fields) {
    rows.push_back({"match " + std::string(greynic::info(field.field).name),
                    field.any_mask        ? "any mask"
                    : field.forms.empty() ? "exact"
                                          : "some masks",
                    "", "", field.forms.empty() ? "probed" : "probed; only " + field.forms});
  }
  for (const ActionKind action : offer.actions) {
    rows.push_back({"action " + std::string(name_of(action)), "yes", "", "", "probed"});
  }
  rows.push_back({"last table", std::to_string(offer.last_table), "", "", "probed"});
  rows.push_back({"last priority", std::to_string(offer.last_priority), "", "", "probed"});
  for (const std::string& note : offer.notes) rows.push_back({note});
  return rows;
}

RulesTarget::RulesTarget(target::Info info, std::unique_ptr<FlowDriver> driver, LayoutLimits limits)
    : info_(std::move(info)), driver_(std::move(driver)), limits_(limits) {
  if (auto offer = driver_->probe()) info_.facts = facts_of(*offer);
}

Result<void> RulesTarget::measure(std::span<const target::MeasureRequest>,
                                  const target::ObservationSink&) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} holds rules only: join it behind a target with traffic, as in "
                          "verbs:DEVICE?peer=HOST+{}",
                          info_.name, info_.name));
}

}  // namespace greynic::flows
