#include "ovs/ovs_driver.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "greynic/os/program.h"
#include "ovs/ovs_read.h"

namespace greynic::flows {
namespace {

/// OpenFlow 1.5 has set_field with masks, meters as actions and bundles.
constexpr const char* kProtocol = "OpenFlow15";

/// The rule whose cookie, its index and one, the switch's words name: "... cookie:0x8 actions=...".
std::optional<std::size_t> refused_rule(std::string_view words) {
  constexpr std::string_view kCookie = "cookie:0x";
  const std::size_t at = words.find(kCookie);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = words.substr(at + kCookie.size());
  std::size_t cookie = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), cookie, 16);
  if (read.ec != std::errc{} || cookie == 0) return std::nullopt;
  return cookie - 1;
}

}  // namespace

OvsDriver::OvsDriver(std::string management_socket, std::function<Result<PortNumbers>()> ports,
                     Journal journal)
    : FlowDriver(std::make_unique<Journal>(std::move(journal))),
      bridge_("unix:" + std::move(management_socket)),
      ports_(std::move(ports)) {}

Result<std::string> OvsDriver::ofctl(std::vector<std::string> words, std::string input) {
  std::vector<std::string> all = {"ovs-ofctl", "-O", kProtocol};
  all.insert(all.end(), std::make_move_iterator(words.begin()),
             std::make_move_iterator(words.end()));
  return os::run({.words = std::move(all), .input = std::move(input)});
}

Result<Offer> OvsDriver::probe() {
  if (auto answer = ofctl({"show", bridge_}); !answer) return pass_on(answer);
  Offer offer;
  for (const MatchFieldInfo& row : match_fields()) {
    if (!ovs_takes(row.field)) continue;
    const std::string forms = ovs_forms(row.field);
    const bool any_mask = forms.empty() && row.width_bits > 1 && ovs_takes_any_mask(row.field);
    offer.fields.push_back({row.field, any_mask, forms});
  }
  offer.actions = {ActionKind::kForward,  ActionKind::kDrop,     ActionKind::kJump,
                   ActionKind::kSetField, ActionKind::kPushVlan, ActionKind::kPopVlan,
                   ActionKind::kCount,    ActionKind::kMeter,    ActionKind::kOther};
  offer.last_table = kOvsLastTable;
  offer.last_priority = kOvsLastPriority;
  offer.notes = {
      "The datapath caches megaflows: the bits that the rules looked at on a packet's way become "
      "the "
      "mask of one, and each distinct mask is a subtable that later packets search one after "
      "another.",
      "Subtables are put in order of their hits once a second, so the order of rules matters only "
      "through the masks it leads to."};
  return offer;
}

Result<void> OvsDriver::check(const RuleSet& rules) {
  auto ports = ports_();
  if (!ports) return pass_on(ports);
  if (auto text = ovs_rules_text(rules, *ports); !text) return pass_on(text);
  return check_unambiguous(rules);
}

Result<std::string> OvsDriver::snapshot() {
  auto text = ofctl({"--no-stats", "--no-names", "dump-flows", bridge_});
  if (!text) return text;
  return flow_lines(*text);
}

Result<void> OvsDriver::replace(std::string lines) {
  // replace-flows compares and changes what differs; --bundle makes that one transaction.
  auto done = ofctl({"--bundle", "replace-flows", bridge_, "-"}, std::move(lines));
  if (!done) return pass_on(done);
  return {};
}

Result<void> OvsDriver::restore(const std::string& lines) { return replace(lines); }

Result<void> OvsDriver::install(const RuleSet& rules) {
  auto ports = ports_();
  if (!ports) return pass_on(ports);
  auto text = ovs_rules_text(rules, *ports);
  if (!text) return pass_on(text);
  const auto done = replace(std::move(*text));
  if (done) return {};
  const auto refused = refused_rule(done.error().message);
  if (!refused || *refused >= rules.rules.size()) return pass_on(done);
  return done.error().while_doing("adding " + place_of(rules, *refused));
}

Result<RuleSet> OvsDriver::list() {
  auto counted = counters();
  if (!counted) return pass_on(counted);
  RuleSet set;
  set.source = bridge_;
  for (RuleCount& row : *counted) set.rules.push_back(std::move(row.rule));
  return set;
}

Result<std::vector<RuleCount>> OvsDriver::counters() {
  auto text = ofctl({"--no-names", "dump-flows", bridge_});
  if (!text) return pass_on(text);
  auto ports = ports_();
  if (!ports) return pass_on(ports);
  return read_flows(*text, *ports);
}

}  // namespace greynic::flows
