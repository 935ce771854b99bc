#include "tc/tc_driver.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_ether.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "common/named_headers.h"
#include "tc/tc_flower.h"
#include "tc/tc_place.h"
#include "tc/tc_snapshot.h"
#include "tc/tc_trial.h"

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr RulePriority kLastPriority = 65534;  // preferences are 1 to 65535; 0 lets the kernel pick
/// No packet comes to this chain: what is tried there changes nothing.
constexpr std::uint32_t kTrialChain = kLastChain - 1;
static_assert(kTrialChain > kFirstTrialChain);

using Preference = std::pair<std::uint32_t, RulePriority>;  // table, priority

/// Filters of one chain and preference are filed under one Ethernet type: under all where theirs
/// differ.
std::map<Preference, std::uint16_t> protocols_of(const RuleSet& rules) {
  std::map<Preference, std::uint16_t> found;
  for (const FlowRule& rule : rules.rules) {
    const std::uint16_t protocol = tc_protocol(rule.match);
    const auto [known, fresh] = found.emplace(Preference(rule.table, rule.priority), protocol);
    if (!fresh && known->second != protocol) known->second = ETH_P_ALL;
  }
  return found;
}

std::uint32_t flags_of(TcPlace place) {
  switch (place) {
    case TcPlace::kSoftwareOnly:
      return TCA_CLS_FLAGS_SKIP_HW;
    case TcPlace::kHardwareOnly:
      return TCA_CLS_FLAGS_SKIP_SW;
    case TcPlace::kBoth:
      return 0;
  }
  return 0;
}

/// A filter's message up to its options, which the caller puts and closes.
os::NetlinkMessage begin_filter(int interface, std::uint32_t chain, std::uint32_t preference,
                                std::uint16_t protocol) {
  tcmsg header = at(interface, kIngress);
  header.tcm_info = TC_H_MAKE(preference << 16, htons(protocol));
  os::NetlinkMessage message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, header);
  message.put_text(TCA_KIND, "flower");
  message.put_value(TCA_CHAIN, chain);
  return message;
}

/// A match on one field as simple as it gets: headers named, exact.
Match example_of(MatchField field) {
  U128 value = 1;
  if (field == F::kEtherType) value = ETH_P_IP;
  if (field == F::kCtState) value = 0x20;
  Match match;
  match.set(field, value, field == F::kCtState ? U128{0x20} : full_mask(field));
  if (info(field).layer == FieldLayer::kTunnel) return match;
  const std::vector<Match> named = headers_named(match);
  if (!named.empty()) match = named.front();
  if (match.mask().bits(F::kSvlanPresent) != 0) match.set(F::kVlanPresent, 1);
  return match;
}

std::optional<Action> example_of(ActionKind kind, const std::string& port) {
  switch (kind) {
    case ActionKind::kForward:
      return Action::forward(port);
    case ActionKind::kJump:
      return Action::jump(kTrialChain);
    case ActionKind::kSetField:
      return Action{.kind = kind, .field = F::kPacketMark, .value = 1, .bits = 1};
    case ActionKind::kVxlanEncap:
      return Action{.kind = kind, .number = 1, .text = "src=10.0.0.1,dst=10.0.0.2"};
    case ActionKind::kMeter:
    case ActionKind::kOther:
      return std::nullopt;
    default:
      return Action{.kind = kind, .number = 1};
  }
}

constexpr std::array kActionKinds = {
    ActionKind::kForward,  ActionKind::kDrop,       ActionKind::kJump,
    ActionKind::kSetField, ActionKind::kVxlanEncap, ActionKind::kVxlanDecap,
    ActionKind::kPushVlan, ActionKind::kPopVlan,    ActionKind::kCount};

}  // namespace

TcDriver::TcDriver(os::NetlinkSocket socket, int interface_number, TcPlace place, Journal journal)
    : FlowDriver(std::make_unique<Journal>(std::move(journal))),
      socket_(std::move(socket)),
      interface_(interface_number),
      place_(place) {}

Result<std::unique_ptr<TcDriver>> TcDriver::open(const std::string& interface, TcPlace place,
                                                 Journal journal) {
  auto socket = os::NetlinkSocket::create();
  if (!socket) return pass_on(socket);
  const auto ports = os::links(*socket);
  if (!ports) return pass_on(ports);
  const auto found = ports->find(interface);
  if (found == ports->end()) {
    return fail(ErrorCode::kMissing,
                fmt::format("there is no network interface {}; `ip link` lists them", interface));
  }
  return std::unique_ptr<TcDriver>(
      new TcDriver(std::move(*socket), found->second, place, std::move(journal)));
}

Result<bool> TcDriver::has_ingress() {
  auto answers = socket_.dump(os::NetlinkMessage(RTM_GETQDISC, 0, at(interface_, 0)));
  if (!answers) return pass_on(answers);
  return std::any_of(answers->begin(), answers->end(), [&](const os::NetlinkAnswer& answer) {
    tcmsg header{};
    if (answer.payload.size() < sizeof header) return false;
    std::memcpy(&header, answer.payload.data(), sizeof header);
    return header.tcm_ifindex == interface_ && header.tcm_parent == TC_H_CLSACT;
  });
}

Result<void> TcDriver::make_ingress() {
  const auto there = has_ingress();
  if (!there) return pass_on(there);
  if (*there) return {};
  tcmsg header = at(interface_, TC_H_CLSACT);
  header.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  std::vector<os::NetlinkMessage> make = {
      os::NetlinkMessage(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, header)};
  make.front().put_text(TCA_KIND, "clsact");
  return socket_.send(make);
}

Result<void> TcDriver::remove_ingress() {
  const auto there = has_ingress();
  if (!there) return pass_on(there);
  if (!*there) return {};
  std::vector<os::NetlinkMessage> remove = {
      os::NetlinkMessage(RTM_DELQDISC, 0, at(interface_, TC_H_CLSACT))};
  return socket_.send(remove);
}

Result<std::vector<os::NetlinkMessage>> TcDriver::filters(const RuleSet& rules) {
  auto ports = os::links(socket_);
  if (!ports) return pass_on(ports);
  const auto protocols = protocols_of(rules);
  std::vector<os::NetlinkMessage> made;
  made.reserve(rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const FlowRule& rule = rules.rules[i];
    const auto no = [&](std::string_view why) {
      return fail(ErrorCode::kUnsupported, fmt::format("{}: {}", place_of(rules, i), why));
    };
    if (rule.table >= kFirstTrialChain) {
      return no(fmt::format("chains end at {}", kFirstTrialChain - 1));
    }
    if (tc_protocol(rule.match) == ETH_P_8021Q &&
        protocols.at({rule.table, rule.priority}) != ETH_P_8021Q) {
      return no("it cannot share a priority with rules for packets without a tag");
    }
    if (rule.priority > kLastPriority)
      return no(fmt::format("priorities end at {}", kLastPriority));
    os::NetlinkMessage message = begin_filter(interface_, rule.table, rule.priority + 1,
                                              protocols.at({rule.table, rule.priority}));
    const std::size_t options = message.open(TCA_OPTIONS);
    if (auto put = put_flower_match(message, rule.match); !put) return no(put.error().message);
    if (auto put = put_tc_actions(message, rule.actions, *ports); !put) {
      return no(put.error().message);
    }
    message.put_value(TCA_FLOWER_FLAGS, flags_of(place_));
    message.close(options);
    made.push_back(std::move(message));
  }
  return made;
}

Result<Offer> TcDriver::probe() {
  const auto there = has_ingress();
  if (!there) return pass_on(there);
  if (auto made = make_ingress(); !made) return pass_on(made);
  if (auto cleared = clear_trials(socket_, interface_); !cleared) return pass_on(cleared);
  auto ports = os::links(socket_);
  if (!ports) return pass_on(ports);
  std::string port = "lo";
  for (const auto& [name, number] : *ports) {
    if (number == interface_) port = name;
  }
  const auto taken = [&](const Match& match, const std::vector<Action>& actions) {
    os::NetlinkMessage message = begin_filter(interface_, kTrialChain, 1, tc_protocol(match));
    const std::size_t options = message.open(TCA_OPTIONS);
    const bool said = put_flower_match(message, match) && put_tc_actions(message, actions, *ports);
    message.put_value(TCA_FLOWER_FLAGS, flags_of(place_));
    message.close(options);
    if (!said) return false;
    std::vector<os::NetlinkMessage> trial = {std::move(message)};
    if (!socket_.send(trial)) return false;
    trial = {os::NetlinkMessage(RTM_DELTFILTER, 0, at(interface_, kIngress))};
    trial.front().put_value(TCA_CHAIN, kTrialChain);
    return socket_.send(trial).has_value();
  };
  Offer offer;
  for (const MatchFieldInfo& row : match_fields()) {
    if (!tc_takes(row.field) || !taken(example_of(row.field), {Action::drop()})) continue;
    const std::string forms = tc_forms(row.field);
    offer.fields.push_back({row.field, forms.empty() && tc_takes_any_mask(row.field), forms});
  }
  for (const ActionKind kind : kActionKinds) {
    const auto action = example_of(kind, port);
    if (action && taken({}, {*action})) offer.actions.push_back(kind);
  }
  offer.last_table = kFirstTrialChain - 1;
  offer.last_priority = kLastPriority;
  offer.notes = {
      "Preferences of a chain are tried one after another, each with a hash table for each mask; "
      "a packet that matches nothing goes on to the host.",
      "An exact ether_type without vlan_present means packets without a tag."};
  if (!*there) {
    if (auto removed = remove_ingress(); !removed) return pass_on(removed);
  }
  return offer;
}

Result<void> TcDriver::check(const RuleSet& rules) {
  if (auto made = filters(rules); !made) return pass_on(made);
  return check_unambiguous(rules);
}

Result<std::vector<os::NetlinkAnswer>> TcDriver::dump(std::uint32_t parent) {
  const auto there = has_ingress();
  if (!there) return pass_on(there);
  if (!*there) return std::vector<os::NetlinkAnswer>{};
  auto answers = socket_.dump(os::NetlinkMessage(RTM_GETTFILTER, 0, at(interface_, parent)));
  if (!answers) return answers;
  // Each preference is announced by an entry without options.
  std::erase_if(*answers, [](const os::NetlinkAnswer& answer) {
    return !is_filter(answer) || is_trial(answer);
  });
  return answers;
}

Result<std::vector<RuleCount>> TcDriver::counters() {
  auto answers = dump(kIngress);
  if (!answers) return pass_on(answers);
  auto ports = os::links(socket_);
  if (!ports) return pass_on(ports);
  std::vector<RuleCount> counted;
  for (const os::NetlinkAnswer& answer : *answers) {
    const tcmsg header = header_of(answer.payload);
    std::string kind;
    os::ByteView options;
    os::each_attribute(attributes_of(answer), [&](std::uint16_t type, os::ByteView value) {
      if (type == TCA_KIND && !value.empty()) {
        kind.assign(reinterpret_cast<const char*>(value.data()), value.size() - 1);
      }
      if (type == TCA_OPTIONS) options = value;
    });
    if (kind != "flower") {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("a filter of kind {} is there, and only flower's can be read", kind));
    }
    auto match = read_flower_match(options, ntohs(TC_H_MIN(header.tcm_info)));
    if (!match) return pass_on(match);
    os::ByteView list;
    os::each_attribute(options, [&](std::uint16_t type, os::ByteView value) {
      if (type == TCA_FLOWER_ACT) list = value;
    });
    auto actions = read_tc_actions(list, *ports);
    if (!actions) return pass_on(actions);
    RuleCount row;
    row.rule.match = std::move(*match);
    row.rule.table = chain_of(answer);
    row.rule.priority = (header.tcm_info >> 16) - 1;
    row.rule.actions = std::move(actions->actions);
    row.packets = actions->packets;
    row.bytes = actions->bytes;
    counted.push_back(std::move(row));
  }
  std::stable_sort(counted.begin(), counted.end(), [](const RuleCount& a, const RuleCount& b) {
    return Preference(a.rule.table, a.rule.priority) < Preference(b.rule.table, b.rule.priority);
  });
  return counted;
}

Result<RuleSet> TcDriver::list() {
  auto counted = counters();
  if (!counted) return pass_on(counted);
  RuleSet set;
  for (RuleCount& row : *counted) set.rules.push_back(std::move(row.rule));
  return set;
}

Result<std::string> TcDriver::snapshot() {
  const auto there = has_ingress();
  if (!there) return pass_on(there);
  if (*there) {
    if (auto cleared = clear_trials(socket_, interface_); !cleared) return pass_on(cleared);
  }
  auto answers = dump(kIngress);
  if (!answers) return pass_on(answers);
  auto text = snapshot_text(*there, *answers);
  if (!text || answers->empty()) return text;
  if (auto plain = check_templates(socket_, interface_); !plain) return pass_on(plain);
  if (auto returns = try_filters(socket_, interface_, *answers); !returns) {
    return pass_on(returns);
  }
  return text;
}

Result<void> TcDriver::remove_all() {
  auto answers = dump(kIngress);
  if (!answers) return pass_on(answers);
  std::set<std::uint32_t> chains;
  for (const os::NetlinkAnswer& answer : *answers) chains.insert(chain_of(answer));
  return flush_chains(socket_, interface_, {chains.begin(), chains.end()});
}

Result<void> TcDriver::restore(const std::string& text) {
  auto wanted = read_snapshot(text, interface_);
  if (!wanted) return pass_on(wanted);
  if (!wanted->ingress) {
    // The discipline came with our rules, but somebody else may use its other half by now.
    const auto egress = dump(kEgress);
    if (!egress) return pass_on(egress);
    return egress->empty() ? remove_ingress() : remove_all();
  }
  if (auto made = make_ingress(); !made) return made;
  if (auto gone = remove_all(); !gone) return gone;
  return socket_.send(wanted->filters);
}

Result<void> TcDriver::install(const RuleSet& rules) {
  auto messages = filters(rules);
  if (!messages) return pass_on(messages);
  if (auto made = make_ingress(); !made) return made;
  if (auto gone = remove_all(); !gone) return gone;
  std::size_t refused = 0;
  auto sent = socket_.send(*messages, &refused);
  if (sent) return {};
  return sent.error().while_doing("adding " + place_of(rules, refused));
}

}  // namespace greynic::flows
