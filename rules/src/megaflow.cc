/// Datapath flows of Open vSwitch, as dpctl/dump-flows prints them, with or without -m:
///   ufid:..., recirc_id(0x58),in_port(p7),eth(src=...,dst=...),eth_type(0x0800),
///   ipv4(src=10.0.0.1,dst=10.0.0.0/255.0.0.0,proto=6,...), packets:0, ..., actions:3
/// They do not overlap where their actions differ, so all get the same priority. A port named
/// instead of numbered gets a number by order of first appearance, counted from 1.

#include <fmt/core.h>

#include <array>
#include <map>
#include <span>

#include "field_value.h"
#include "line_text.h"
#include "ovs_fields.h"
#include "readers.h"

namespace greynic::rules {
namespace {

using F = MatchField;

struct Member {
  std::string_view key;
  MatchField field;
};

/// A key of the dump with members, "ipv4(src=...,dst=...)", and where each member belongs.
struct Group {
  std::string_view name;
  std::array<Member, 5> members;
};

constexpr std::array kGroups = {
    Group{"eth", {{{"src", F::kEthernetSrc}, {"dst", F::kEthernetDst}}}},
    Group{"vlan", {{{"vid", F::kVlanId}, {"pcp", F::kVlanPriority}}}},
    Group{"ipv4",
          {{{"src", F::kIpv4Src},
            {"dst", F::kIpv4Dst},
            {"proto", F::kIpProtocol},
            {"ttl", F::kIpTtl}}}},
    Group{"ipv6",
          {{{"src", F::kIpv6Src},
            {"dst", F::kIpv6Dst},
            {"label", F::kIpv6FlowLabel},
            {"proto", F::kIpProtocol},
            {"hlimit", F::kIpTtl}}}},
    Group{"tcp", {{{"src", F::kL4SrcPort}, {"dst", F::kL4DstPort}}}},
    Group{"udp", {{{"src", F::kL4SrcPort}, {"dst", F::kL4DstPort}}}},
    Group{"sctp", {{{"src", F::kL4SrcPort}, {"dst", F::kL4DstPort}}}},
    Group{"icmp", {{{"type", F::kIcmpType}, {"code", F::kIcmpCode}}}},
    Group{"icmpv6", {{{"type", F::kIcmpType}, {"code", F::kIcmpCode}}}},
    Group{
        "nd",
        {{{"target", F::kNdTarget}, {"sll", F::kNdSourceEthernet}, {"tll", F::kNdTargetEthernet}}}},
    Group{"arp",
          {{{"sip", F::kArpSenderIpv4},
            {"tip", F::kArpTargetIpv4},
            {"op", F::kArpOperation},
            {"sha", F::kArpSenderEthernet},
            {"tha", F::kArpTargetEthernet}}}},
    Group{"tunnel",
          {{{"tun_id", F::kVxlanVni}, {"src", F::kTunnelIpv4Src}, {"dst", F::kTunnelIpv4Dst}}}},
};

struct Single {
  std::string_view name;
  MatchField field;
};
constexpr std::array kSingles = {
    Single{"recirc_id", F::kRecirculationId},
    Single{"dp_hash", F::kDatapathHash},
    Single{"skb_mark", F::kPacketMark},
    Single{"eth_type", F::kEtherType},
    Single{"ct_zone", F::kCtZone},
    Single{"ct_mark", F::kCtMark},
    Single{"ct_label", F::kCtLabel},
};

/// "x/0" and "x/0.0.0.0" look at nothing, whatever the field.
bool looks_at_nothing(std::string_view value) {
  const std::size_t slash = value.find('/');
  return slash != std::string_view::npos &&
         value.substr(slash + 1).find_first_not_of("0x.:") == std::string_view::npos;
}

class FlowReader {
 public:
  explicit FlowReader(std::map<std::string, std::uint32_t, std::less<>>& ports) : ports_(ports) {}

  [[nodiscard]] const Match& match() const { return match_; }

  /// Adds "name(content)"; a complaint when it cannot be held.
  std::optional<Complaint> add(std::string_view part) {
    const std::size_t open = part.find('(');
    if (open == std::string_view::npos || !part.ends_with(')')) {
      return fmt::format("'{}' is no key of a datapath flow", shown(part));
    }
    const std::string_view name = part.substr(0, open);
    const std::string_view content = part.substr(open + 1, part.size() - open - 2);
    if (name == "in_port") return add_port(content);
    if (name == "ct_state") return set(F::kCtState, ct_state_from(content), part);
    if (name == "tcp_flags") return set(F::kTcpFlags, tcp_flags_from(content), part);
    for (const Single& row : kSingles) {
      if (row.name == name) return set(row.field, masked_from(row.field, content), part);
    }
    for (const Group& group : kGroups) {
      if (group.name == name) return add_group(group, content, part);
    }
    if (name == "packet_type" && content == "ns=0,id=0") return std::nullopt;  // Ethernet
    if (all_wild(content)) return std::nullopt;
    return fmt::format("'{}' looks at what no match field of greynic holds", shown(part));
  }

 private:
  static bool all_wild(std::string_view content) {
    const auto members = split_outside_brackets(content, ',');
    if (!members) return false;
    for (const std::string_view member : *members) {
      if (!looks_at_nothing(member)) return false;
    }
    return true;
  }

  std::optional<Complaint> set(MatchField field, const std::optional<Masked>& masked,
                               std::string_view part) {
    if (!masked) return fmt::format("'{}' holds no value of {}", shown(part), info(field).name);
    match_.set(field, masked->value, masked->bits);
    return std::nullopt;
  }

  std::optional<Complaint> add_port(std::string_view content) {
    if (looks_at_nothing(content)) return std::nullopt;
    if (const auto number = number_from(content); number && *number <= 0xffffffff) {
      match_.set(F::kInPort, *number);
      return std::nullopt;
    }
    if (content.empty()) return "in_port() names no port";
    const auto next = static_cast<std::uint32_t>(ports_.size() + 1);
    match_.set(F::kInPort, ports_.try_emplace(std::string(content), next).first->second);
    return std::nullopt;
  }

  std::optional<Complaint> add_group(const Group& group, std::string_view content,
                                     std::string_view part) {
    const auto members = split_outside_brackets(content, ',');
    if (!members) return fmt::format("the brackets of '{}' do not match", shown(part));
    if (group.name == "vlan") match_.set(F::kVlanPresent, 1);
    for (const std::string_view member : *members) {
      if (auto complaint = add_member(group, trimmed(member), part)) return complaint;
    }
    return std::nullopt;
  }

  std::optional<Complaint> add_member(const Group& group, std::string_view member,
                                      std::string_view part) {
    const std::size_t equals = member.find('=');
    const std::string_view key = member.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : member.substr(equals + 1);
    if (key == "frag") return set(F::kIpFragment, fragment_from(value), part);
    if (key == "tos" || key == "tclass") return add_tos(value, part);
    for (const Member& row : group.members) {
      if (!row.key.empty() && row.key == key) {
        return looks_at_nothing(value) ? std::nullopt
                                       : set(row.field, masked_from(row.field, value), part);
      }
    }
    if (looks_at_nothing(value)) return std::nullopt;
    return fmt::format("'{}' of '{}' looks at what no match field of greynic holds", shown(member),
                       group.name);
  }

  /// The type-of-service byte is six bits of DSCP over two of ECN.
  std::optional<Complaint> add_tos(std::string_view value, std::string_view part) {
    const auto masked = masked_from(F::kIpTtl, value);  // any field of 8 bits
    if (!masked) return fmt::format("'{}' holds no type of service", shown(part));
    match_.set(F::kIpDscp, masked->value >> 2, masked->bits >> 2);
    match_.set(F::kIpEcn, masked->value & 3, masked->bits & 3);
    return std::nullopt;
  }

  Match match_;
  std::map<std::string, std::uint32_t, std::less<>>& ports_;
};

/// The text of "actions:..." up to what -m prints behind it.
std::string_view actions_text(std::string_view line) {
  const std::size_t mark = line.find("actions:");
  if (mark == std::string_view::npos) return {};
  const std::string_view text = line.substr(mark + 8);
  return trimmed(text.substr(0, text.find(", dp-extra-info:")));
}

std::vector<Action> actions_from(const std::vector<std::string_view>& parts) {
  std::vector<Action> actions;
  for (const std::string_view part : parts) {
    if (part == "drop") {
      actions.push_back(Action::drop());
    } else if (part == "pop_vlan") {
      actions.push_back({.kind = ActionKind::kPopVlan});
    } else if (part.find('(') == std::string_view::npos && part != "ct_clear" &&
               part != "pop_nsh" && part != "pop_eth") {
      actions.push_back(Action::forward(std::string(part)));  // a port, by number or name
    } else {
      actions.push_back(Action::other(std::string(part)));
    }
  }
  return actions;
}

/// "packets:12" among the statistics.
double packets_of(std::string_view part) {
  const auto number = part.starts_with("packets:") ? number_from(part.substr(8)) : std::nullopt;
  return number ? static_cast<double>(*number) : 0.0;
}

}  // namespace

Result<RuleSet> parse_megaflows(std::string_view text, const std::string& source) {
  RuleSet set{{}, source};
  std::map<std::string, std::uint32_t, std::less<>> ports;
  double all_packets = 0.0;
  const auto lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = trimmed(lines[index]);
    const bool header = line.starts_with("flow-dump from") || line.starts_with("dpctl");
    if (line.empty() || line.front() == '#' || header) continue;
    const std::size_t mark = line.find("actions:");
    if (mark == std::string_view::npos) return bad_line(source, index, "has no actions:");
    const auto parts = split_outside_brackets(trimmed(line.substr(0, mark)), ',');
    const auto actions = split_outside_brackets(actions_text(line), ',');
    if (!parts || !actions) return bad_line(source, index, "its brackets do not match");
    FlowReader reader(ports);
    FlowRule rule;
    for (std::string_view part : *parts) {
      part = trimmed(part);
      const std::size_t open = part.find('(');
      const std::size_t colon = part.find(':');
      if (part.empty()) continue;
      if (colon < open) {  // "ufid:...", "packets:0", "used:never": no key
        rule.weight += packets_of(part);
        continue;
      }
      if (const auto complaint = reader.add(part)) return bad_line(source, index, *complaint);
    }
    for (const std::string_view action : *actions) {
      if (trimmed(action).empty()) return bad_line(source, index, "an action is empty");
    }
    rule.match = reader.match();
    rule.actions = actions_from(*actions);
    rule.from = {static_cast<std::uint32_t>(index)};
    all_packets += rule.weight;
    set.rules.push_back(std::move(rule));
  }
  if (set.rules.empty()) return fail(ErrorCode::kBadInput, source + ": holds no datapath flow");
  for (FlowRule& rule : set.rules) rule.weight = all_packets > 0 ? rule.weight / all_packets : 0.0;
  return set;
}

}  // namespace greynic::rules
