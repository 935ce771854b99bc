#include "greynic/campaign/mask_target.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <set>

#include "greynic/campaign/run.h"

namespace greynic::campaign {
namespace {

constexpr Hop kHops[] = {Hop::kClientEncap, Hop::kServerDecap, Hop::kServerEncap,
                         Hop::kClientDecap};

/// 128 bits that follow from a group's name and a field.
U128 bits_for(const MaskGroup& group, MatchField field) {
  const Configuration name = {{"group", group.name}, {"field", std::string(info(field).name)}};
  return U128{request_seed(0, name, 0)} << 64 | request_seed(0, name, 1);
}

/// Whether a group's factor for a field says the field's value too, as a header's does.
bool is_header(const MaskGroup& group, MatchField field) {
  const auto factors = mask_factors(group).value();
  return std::ranges::any_of(
      factors, [&](const MaskFactor& factor) { return factor.field == field && factor.is_header; });
}

/// The rule number `number` of a group: its number, written into the lowest of the bits that are
/// free, tells it from the group's others. Empty when there are too few bits.
std::optional<Match> numbered(const MaskGroup& group, Match match, std::uint64_t number) {
  const std::vector<FieldMatch> fields = match.fields();
  for (const FieldMatch& field : fields) {
    if (is_header(group, field.field)) continue;
    U128 value = bits_for(group, field.field) & field.bits;
    for (U128 rest = field.bits; rest != 0 && number != 0; rest &= rest - 1, number >>= 1U) {
      if ((number & 1U) != 0) value ^= rest & (~rest + 1);
    }
    match.set(field.field, value, field.bits);
  }
  if (number != 0) return std::nullopt;
  return match;
}

/// The rule's values, and headers that it takes for granted.
Packet packet_of(const Match& match) {
  Packet packet;
  std::set<MatchField> there;
  for (const FieldMatch& field : match.fields()) {
    packet.set(field.field, field.value);
    there.insert(field.field);
  }
  std::map<MatchField, std::vector<std::string>> granted;
  std::vector<MatchField> open(there.begin(), there.end());
  while (!open.empty()) {
    const auto need = header_need(open.back());
    open.pop_back();
    if (!need || match.mask().bits(need->header) != 0) continue;
    const auto [place, first] = granted.try_emplace(need->header, need->values);
    if (first) open.push_back(need->header);
    std::erase_if(place->second, [&](const std::string& value) {
      return std::ranges::find(need->values, value) == need->values.end();
    });
  }
  for (const auto& [header, values] : granted) {
    if (values.empty()) continue;
    packet.set(header, field_value_from_string(header, values.front()).value());
  }
  return packet;
}

/// Everything about rules goes through to the device. A layout that was installed from outside
/// stays until it is rolled back; the masks of a configuration then say nothing.
class MaskTarget final : public target::Target, public target::RuleHolder {
 public:
  MaskTarget(std::unique_ptr<target::Target> device, const Campaign& campaign)
      : device_(std::move(device)), groups_(campaign.masks), names_(names_of_masks(campaign)) {}
  ~MaskTarget() override {
    if (installed_) (void)device_->rules().roll_back();
  }

  target::Info info() const override { return device_->info(); }

  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    bool go_on = true;
    for (std::size_t begin = 0; begin < requests.size() && go_on;) {
      const Configuration masks = part(requests[begin].configuration, true);
      std::size_t end = begin + 1;
      while (end < requests.size() && part(requests[end].configuration, true) == masks) ++end;
      auto done = measure_with(masks, requests.subspan(begin, end - begin),
                               [&](std::size_t index, Observation observation) {
                                 go_on = sink(begin + index, std::move(observation));
                                 return go_on;
                               });
      if (!done) return done;
      begin = end;
    }
    return {};
  }

  target::RuleHolder& rules() override { return *this; }
  RuleSet spell_out(RuleSet rules) const override {
    return device_->rules().spell_out(std::move(rules));
  }
  Result<void> check(const target::FittedLayout& layout,
                     const target::Placement& placement) override {
    return device_->rules().check(layout, placement);
  }
  Result<void> install(const target::FittedLayout& layout, const Traffic* traffic,
                       const target::Placement& placement) override {
    auto done = device_->rules().install(layout, traffic, placement);
    if (!done) return done;
    installed_.reset();
    laid_out_ = true;
    return {};
  }
  Result<void> roll_back() override {
    installed_.reset();
    laid_out_ = false;
    return device_->rules().roll_back();
  }
  Result<void> check_traffic(const Traffic& traffic) const override {
    return device_->rules().check_traffic(traffic);
  }
  LayoutLimits limits() const override { return device_->rules().limits(); }
  bool has_slow_path() const override { return device_->rules().has_slow_path(); }
  Result<std::vector<target::CountedRule>> counted_rules() override {
    return device_->rules().counted_rules();
  }

 protected:
  Layout spelled_out(const Layout& layout) const override {
    return device_->rules().fit(layout, target::LayoutForm::kAsWritten).layout();
  }
  Layout fastest(Layout layout) const override { return device_->rules().fit(layout).layout(); }

 private:
  /// What a configuration says of the masks, or of all the rest.
  Configuration part(const Configuration& configuration, bool of_masks) const {
    Configuration out;
    for (const auto& [name, level] : configuration.levels()) {
      const bool rule_count = of_masks && name == "rules_per_mask";
      if (names_.contains(name) == of_masks || rule_count) out.set(name, level);
    }
    return out;
  }

  Result<void> install_masks(const Configuration& masks) {
    target::RuleHolder& holder = device_->rules();
    for (const Hop hop : kHops) {
      const auto here = [&](const MaskGroup& group) { return group.hop == hop; };
      if (std::ranges::none_of(groups_, here)) continue;
      const RuleSet rules = holder.spell_out(rules_of(groups_, hop, masks));
      const Traffic traffic = traffic_of(rules);
      auto done = holder.install(holder.fit(flat_layout(rules)), &traffic, {.hop = hop});
      if (!done) return done;
    }
    installed_ = masks;
    return {};
  }

  Result<void> measure_with(const Configuration& masks,
                            std::span<const target::MeasureRequest> requests,
                            const target::ObservationSink& sink) {
    if (!laid_out_ && installed_ != masks) {
      auto done = install_masks(masks);
      if (!done && done.error().code != ErrorCode::kRefused) return done;
      if (!done) {
        if (auto back = roll_back(); !back) return back;
        Observation refused;
        refused.outcome = Outcome::kRefused;
        refused.reason = done.error().message;
        for (std::size_t i = 0; i < requests.size(); ++i) {
          if (!sink(i, refused)) return {};
        }
        return {};
      }
    }
    std::vector<target::MeasureRequest> rest(requests.begin(), requests.end());
    for (target::MeasureRequest& request : rest) {
      request.configuration = part(request.configuration, false);
    }
    return device_->measure(rest, [&](std::size_t index, Observation observation) {
      if (!observation.granted.empty()) {
        for (const auto& [name, level] : masks.levels()) observation.granted.set(name, level);
      }
      return sink(index, std::move(observation));
    });
  }

  std::unique_ptr<target::Target> device_;
  std::vector<MaskGroup> groups_;
  std::set<std::string> names_;
  std::optional<Configuration> installed_;  ///< the masks that the device has
  bool laid_out_ = false;                   ///< the device has a layout from outside instead
};

}  // namespace

std::set<std::string> names_of_masks(const Campaign& campaign) {
  std::set<std::string> names;
  for (const MaskGroup& group : campaign.masks) {
    const auto factors = mask_factors(group).value();
    for (const MaskFactor& made : factors) names.insert(made.factor.name);
  }
  if (campaign.mask_order) {
    const auto places = order_factors(campaign.masks);
    for (const Factor& factor : places) names.insert(factor.name);
  }
  return names;
}

RuleSet rules_of(std::span<const MaskGroup> groups, Hop hop, const Configuration& configuration) {
  RuleSet rules;
  const auto wanted = static_cast<std::uint64_t>(configuration.number("rules_per_mask"));
  std::set<std::pair<RulePriority, Match>> there;
  for (const MaskGroup& group : groups) {
    const Match match = match_of(group, configuration);
    if (group.hop != hop || match.fields().empty()) continue;
    const auto priority = static_cast<RulePriority>(configuration.number(group.name + ".order"));
    for (std::uint64_t number = 0; number < wanted; ++number) {
      const auto own = numbered(group, match, number);
      if (!own) break;
      if (!there.emplace(priority, *own).second) continue;
      rules.rules.push_back({.match = *own, .priority = priority, .actions = {Action::drop()}});
    }
  }
  std::ranges::stable_sort(rules.rules, {}, &FlowRule::priority);
  return rules;
}

Traffic traffic_of(const RuleSet& rules) {
  Traffic traffic;
  for (const FlowRule& rule : rules.rules) {
    traffic.flows.push_back({.packet = packet_of(rule.match)});
  }
  return traffic;
}

Result<std::unique_ptr<target::Target>> with_masks(std::unique_ptr<target::Target> device,
                                                   const Campaign& campaign) {
  if (campaign.masks.empty()) return device;
  const target::Info info = device->info();
  for (const MaskGroup& group : campaign.masks) {
    target::RuleHolder& holder = device->rules();
    const auto takes_rules = holder.check(holder.fit(Layout{}), {.hop = group.hop});
    if (takes_rules || takes_rules.error().code != ErrorCode::kUnsupported) continue;
    if (info.factors.empty()) return device;
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: at /masks: {}", campaign.source, takes_rules.error().message));
  }
  return std::unique_ptr<target::Target>(std::make_unique<MaskTarget>(std::move(device), campaign));
}

}  // namespace greynic::campaign
