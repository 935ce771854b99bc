#include "topology/packet_walk.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "greynic/core/wire_numbers.h"

namespace greynic::testgen {

namespace {

using enum MatchField;

constexpr std::array<std::pair<MatchField, MatchField>, 10> kInnerOf = {
    {{kEthernetDst, kInnerEthernetDst},
     {kEthernetSrc, kInnerEthernetSrc},
     {kEtherType, kInnerEtherType},
     {kIpv4Src, kInnerIpv4Src},
     {kIpv4Dst, kInnerIpv4Dst},
     {kIpProtocol, kInnerIpProtocol},
     {kL4SrcPort, kInnerL4SrcPort},
     {kL4DstPort, kInnerL4DstPort},
     {kIpv6Src, kInnerIpv6Src},
     {kIpv6Dst, kInnerIpv6Dst}}};

constexpr U128 kVxlanPort = 4789;

bool is_metadata(MatchField field) {
  const FieldLayer layer = info(field).layer;
  return layer == FieldLayer::kPort || layer == FieldLayer::kRegister ||
         layer == FieldLayer::kConnection;
}

/// "src=10.0.0.1,dst=10.0.0.2": the value of one option.
std::optional<U128> option(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    if (item.starts_with(name) && item.size() > name.size() && item[name.size()] == '=') {
      return field_value_from_string(kIpv4Src, item.substr(name.size() + 1));
    }
    text.remove_prefix(std::min(text.size(), comma + 1));
  }
  return std::nullopt;
}

std::string encapsulate(const Action& action, Headers& headers) {
  if (headers.tunnelled) return "is encapsulated twice";
  std::map<MatchField, U128> outer;
  for (const auto& [field, value] : headers.fields) {
    if (is_metadata(field)) outer[field] = value;
    const auto inner =
        std::find_if(kInnerOf.begin(), kInnerOf.end(),
                     [field = field](const auto& pair) { return pair.first == field; });
    if (inner != kInnerOf.end()) outer[inner->second] = value;
  }
  outer[kEtherType] = ether_type::kIpv4;
  outer[kIpv4Src] = option(action.text, "src").value_or(0);
  outer[kIpv4Dst] = option(action.text, "dst").value_or(0);
  outer[kIpProtocol] = ip_protocol::kUdp;
  outer[kL4DstPort] = kVxlanPort;
  outer[kVxlanVni] = action.number;
  headers.fields = std::move(outer);
  headers.tunnelled = true;
  return {};
}

std::string decapsulate(Headers& headers) {
  if (!headers.tunnelled) return "is decapsulated without a tunnel header";
  std::map<MatchField, U128> plain;
  for (const auto& [field, value] : headers.fields) {
    if (is_metadata(field)) plain[field] = value;
    const auto outer =
        std::find_if(kInnerOf.begin(), kInnerOf.end(),
                     [field = field](const auto& pair) { return pair.second == field; });
    if (outer != kInnerOf.end()) plain[outer->first] = value;
  }
  headers.fields = std::move(plain);
  headers.tunnelled = false;
  return {};
}

/// Changes the headers; the reason when it cannot.
std::string change(const Action& action, Headers& headers) {
  switch (action.kind) {
    case ActionKind::kSetField: {
      const auto found = headers.fields.find(action.field);
      if (is_metadata(action.field)) {
        U128& value = headers.fields[action.field];
        value = (value & ~action.bits) | (action.value & action.bits);
        return {};
      }
      if (found == headers.fields.end()) {
        return fmt::format("has no {} to rewrite", info(action.field).name);
      }
      found->second = (found->second & ~action.bits) | (action.value & action.bits);
      return {};
    }
    case ActionKind::kVxlanEncap:
      return encapsulate(action, headers);
    case ActionKind::kVxlanDecap:
      return decapsulate(headers);
    case ActionKind::kPushVlan:
      if (headers.fields.contains(kVlanId)) return "is given a second VLAN tag";
      headers.fields[kVlanPresent] = 1;
      headers.fields[kVlanId] = action.number;
      return {};
    case ActionKind::kPopVlan:
      if (headers.fields.erase(kVlanId) == 0) return "has no VLAN tag to pop";
      headers.fields.erase(kVlanPresent);
      return {};
    default:
      return {};
  }
}

bool reads_in_port(const TopologySwitch& at) {
  for (const TopologyTable& table : at.tables) {
    for (const TopologyGroup& group : table.groups) {
      for (const TopologyRule& rule : group.rules) {
        for (const Match& match : rule.matches) {
          for (const FieldMatch& field : match.fields()) {
            if (field.field == kInPort) return true;
          }
        }
      }
    }
  }
  return false;
}

/// Entering a switch. Where no rule reads the port it is left out, so that packets which differ in
/// nothing else are one state.
WalkState enter(const Topology& topology, const PortRef& port, Headers headers) {
  std::erase_if(headers.fields, [](const auto& field) { return is_metadata(field.first); });
  const TopologySwitch& at = topology.switches[port.at];
  if (reads_in_port(at)) headers.fields[kInPort] = port.port + 1;
  std::size_t table = 0;
  while (at.tables[table].id != 0) ++table;
  return {port.at, table, std::move(headers)};
}

}  // namespace

WalkState start_of(const Topology& topology, const TopologyFlow& flow) {
  return enter(topology, topology.containers[flow.from].port, {flow.packet, false});
}

bool matches(const Match& match, const Headers& headers) {
  return std::all_of(match.fields().begin(), match.fields().end(), [&](const FieldMatch& field) {
    const auto found = headers.fields.find(field.field);
    if (found != headers.fields.end()) return (found->second & field.bits) == field.value;
    return is_metadata(field.field) && field.value == 0;
  });
}

bool has_headers(const Match& match, const Headers& headers) {
  return std::all_of(match.fields().begin(), match.fields().end(), [&](const FieldMatch& field) {
    return is_metadata(field.field) || headers.fields.contains(field.field);
  });
}

WalkStep apply(const Topology& topology, const WalkState& state,
               const std::vector<Action>& actions) {
  const TopologySwitch& at = topology.switches[state.at];
  Headers headers = state.headers;
  WalkStep step;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kDrop) break;
    if (action.kind == ActionKind::kJump) {
      std::size_t table = 0;
      while (at.tables[table].id != action.number) ++table;
      step.next = WalkState{state.at, table, std::move(headers)};
      return step;
    }
    if (action.kind == ActionKind::kForward) {
      const auto port = std::find(at.ports.begin(), at.ports.end(), action.text);
      const PortRef out{state.at, static_cast<std::size_t>(port - at.ports.begin())};
      if (const auto wire = topology.wires.find(out); wire != topology.wires.end()) {
        step.next = enter(topology, wire->second, std::move(headers));
        return step;
      }
      for (std::size_t c = 0; c < topology.containers.size(); ++c) {
        if (topology.containers[c].port != out) continue;
        if (headers.tunnelled) {
          step.lost = fmt::format("reaches {} inside a tunnel", topology.containers[c].name);
        } else {
          step.container = c;
        }
        return step;
      }
      step.lost = fmt::format("leaves {} by port {}, where nothing is", at.name, action.text);
      return step;
    }
    if (std::string why = change(action, headers); !why.empty()) {
      step.lost = fmt::format("{} in {}", why, at.name);
      return step;
    }
  }
  step.lost = fmt::format("is dropped in {}", at.name);
  return step;
}

std::string unusable(const TopologySwitch& at, const std::vector<Action>& actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    const bool last = i + 1 == actions.size();
    switch (action.kind) {
      case ActionKind::kForward:
        if (std::find(at.ports.begin(), at.ports.end(), action.text) == at.ports.end()) {
          return fmt::format("{} has no port '{}'", at.name, action.text);
        }
        if (!last) return "nothing may follow a forward action";
        break;
      case ActionKind::kJump:
        if (std::none_of(at.tables.begin(), at.tables.end(),
                         [&](const TopologyTable& table) { return table.id == action.number; })) {
          return fmt::format("{} has no table {}", at.name, action.number);
        }
        if (!last) return "nothing may follow a jump";
        break;
      case ActionKind::kDrop:
        if (!last) return "nothing may follow a drop";
        break;
      case ActionKind::kVxlanEncap:
        if (!option(action.text, "dst")) return "vxlan_encap needs options \"src=...,dst=...\"";
        break;
      case ActionKind::kOther:
        return fmt::format("the action '{}' is not understood in a topology", action.text);
      default:
        break;
    }
  }
  return {};
}

}  // namespace greynic::testgen
