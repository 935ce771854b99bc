#include "dpdk/rte_driver.h"

#include <fmt/core.h>

#include <array>
#include <functional>
#include <utility>

#include "common/journal.h"
#include "common/named_headers.h"
#include "dpdk/rte_defects.h"
#include "dpdk/rte_open.h"
#include "dpdk/rte_rules.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// A match on one field as simple as it gets, exact or with one bit open.
Match example_of(MatchField field, bool masked) {
  U128 value = 1;
  if (field == F::kEtherType || field == F::kInnerEtherType) value = 0x0800;
  if (field == F::kIpProtocol || field == F::kInnerIpProtocol) value = 17;
  const U128 all = field == F::kMetadata ? U128{0xffffffff} : full_mask(field);
  Match match;
  match.set(field, masked ? U128{0} : value, masked ? all & ~U128{1} : all);
  if (field == F::kInnerIpv4Src || field == F::kInnerIpv4Dst || field == F::kInnerIpProtocol) {
    match.set(F::kInnerEtherType, 0x0800);
  }
  if (field == F::kInnerIpv6Src || field == F::kInnerIpv6Dst) match.set(F::kInnerEtherType, 0x86dd);
  if (field == F::kInnerL4SrcPort || field == F::kInnerL4DstPort) {
    match.set(F::kInnerEtherType, 0x0800);
    match.set(F::kInnerIpProtocol, 17);
  }
  const std::vector<Match> named = headers_named(match);
  if (!named.empty()) match = named.front();
  if (match.mask().bits(F::kSvlanPresent) != 0) match.set(F::kVlanPresent, 1);
  return match;
}

constexpr std::array kActionKinds = {
    ActionKind::kForward,    ActionKind::kDrop,       ActionKind::kJump,     ActionKind::kSetField,
    ActionKind::kVxlanEncap, ActionKind::kVxlanDecap, ActionKind::kPushVlan, ActionKind::kPopVlan,
    ActionKind::kCount,      ActionKind::kMeter};

Action example_of(ActionKind kind) {
  Action action{.kind = kind, .number = 1};
  if (kind == ActionKind::kForward) action.text = "queue:0";
  if (kind == ActionKind::kVxlanEncap) action.text = "src=10.0.0.1,dst=10.0.0.2";
  if (kind == ActionKind::kSetField) {
    action.field = F::kPacketMark;
    action.value = 1;
    action.bits = full_mask(F::kPacketMark);
  }
  return action;
}

/// The largest number, below `end`, that `taken` accepts; numbers are accepted up to some point.
std::uint32_t last_taken(std::uint32_t end, const std::function<bool(std::uint32_t)>& taken) {
  std::uint32_t low = 0;
  while (low + 1 < end) {
    const std::uint32_t middle = low + (end - low) / 2;
    (taken(middle) ? low : end) = middle;
  }
  return low;
}

}  // namespace

RteDriver::RteDriver(const RteCalls& calls, std::uint16_t port, std::string driver_name,
                     std::unique_ptr<RtePath> path, std::unique_ptr<RtePort> owned)
    : FlowDriver(std::make_unique<Journal>(Journal::in_memory())),
      calls_(calls),
      number_(port),
      driver_name_(std::move(driver_name)),
      port_(std::move(owned)),
      path_(std::move(path)) {}

Result<std::unique_ptr<RteDriver>> RteDriver::open(const std::string& device) {
  auto port = RtePort::open(device);
  if (!port) return pass_on(port);
  const std::uint16_t number = (*port)->number();
  auto path = choose_path(dpdk_calls(), number);
  if (auto up = (*port)->start(); !up) return pass_on(up);
  std::string name = (*port)->driver_name();
  return std::make_unique<RteDriver>(dpdk_calls(), number, std::move(name), std::move(path),
                                     std::move(*port));
}

Result<RteRule> RteDriver::made_of(const FlowRule& rule) const {
  if (const auto defect = rte_defect(driver_name_, rule)) {
    return fail(ErrorCode::kUnsupported, *defect);
  }
  return rte_rule_of(rule);
}

Result<std::vector<RteRule>> RteDriver::made_of(const RuleSet& rules) const {
  std::vector<RteRule> all;
  all.reserve(rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    auto made = made_of(rules.rules[i]);
    if (!made) {
      return made.error().while_doing("making " + place_of(rules, i));
    }
    all.push_back(std::move(*made));
  }
  return all;
}

Result<std::unique_ptr<FlowDriver>> open_rte(const std::string& device) {
  auto driver = RteDriver::open(device);
  if (!driver) return pass_on(driver);
  return std::unique_ptr<FlowDriver>(std::move(*driver));
}

Result<Offer> RteDriver::probe() {
  Offer offer;
  const auto takes = [&](const Match& match, const Action& action) {
    FlowRule rule;
    rule.match = match;
    rule.actions = {action};
    const auto made = made_of(rule);
    return made && path_->takes(*made);
  };
  for (const MatchFieldInfo& row : match_fields()) {
    if (!rte_takes(row.field) || !takes(example_of(row.field, false), Action::drop())) continue;
    const bool masked = row.width_bits > 1 && takes(example_of(row.field, true), Action::drop());
    const std::string forms = row.field == F::kMetadata ? "the lower 32 bits" : "";
    offer.fields.push_back({row.field, masked && forms.empty(), forms});
  }
  Match any_ipv4;
  any_ipv4.set(F::kEtherType, 0x0800);
  for (const ActionKind kind : kActionKinds) {
    if (takes(any_ipv4, example_of(kind))) offer.actions.push_back(kind);
  }
  const auto placed = [&](std::uint32_t table, RulePriority priority) {
    FlowRule rule;
    rule.match = any_ipv4;
    rule.table = table;
    rule.priority = priority;
    const auto made = made_of(rule);
    return made && path_->takes(*made);
  };
  constexpr std::uint32_t kFarEnough = 1U << 24;
  offer.last_table = last_taken(kFarEnough, [&](std::uint32_t table) { return placed(table, 0); });
  offer.last_priority =
      last_taken(kFarEnough, [&](std::uint32_t priority) { return placed(0, priority); });
  offer.notes = {path_->about(), "The port belongs to this process: its rules go when it ends."};
  return offer;
}

Result<void> RteDriver::check(const RuleSet& rules) {
  const auto made = made_of(rules);
  if (!made) return pass_on(made);
  if (auto good = path_->check(*made); !good) return good;
  return check_unambiguous(rules);
}

Result<RuleSet> RteDriver::list() {
  RuleSet set;
  for (const Installed& installed : rules_) set.rules.push_back(installed.rule);
  return set;
}

Result<std::vector<RuleCount>> RteDriver::counters() {
  std::vector<RuleCount> counted;
  for (const Installed& installed : rules_) {
    RuleCount row{.rule = installed.rule};
    rte_flow_query_count numbers{};
    const rte_flow_action_count what{};
    const std::array<rte_flow_action, 2> actions = {
        {{RTE_FLOW_ACTION_TYPE_COUNT, &what}, {RTE_FLOW_ACTION_TYPE_END, nullptr}}};
    rte_flow_error error{};
    if (calls_.query(number_, installed.handle, actions.data(), &numbers, &error) == 0) {
      row.packets = numbers.hits_set != 0 ? numbers.hits : 0;
      row.bytes = numbers.bytes_set != 0 ? numbers.bytes : 0;
    }
    counted.push_back(std::move(row));
  }
  return counted;
}

Result<std::string> RteDriver::snapshot() {
  std::vector<FlowRule> rules;
  for (const Installed& installed : rules_) rules.push_back(installed.rule);
  remembered_.push_back(std::move(rules));
  return std::to_string(remembered_.size() - 1);
}

Result<void> RteDriver::restore(const std::string& text) {
  return install({remembered_.at(static_cast<std::size_t>(std::stoul(text))), ""});
}

Result<void> RteDriver::install(const RuleSet& rules) {
  const auto made = made_of(rules);
  if (!made) return pass_on(made);
  auto handles = path_->replace(*made);
  if (!handles) {
    // Whatever the port holds now, the snapshot replaces it.
    rules_.clear();
    return pass_on(handles);
  }
  rules_.clear();
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    FlowRule kept = rules.rules[i];
    kept.weight = 0;
    kept.from.clear();
    if (kept.actions.empty()) kept.actions = {Action::drop()};
    rules_.push_back({(*handles)[i], std::move(kept)});
  }
  return {};
}

}  // namespace greynic::flows
