#include "dpdk/rte_rules.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <rte_byteorder.h>

#include <charconv>
#include <cstring>

#include "common/action_limits.h"
#include "common/refusal.h"
#include "common/tunnel_options.h"
#include "dpdk/rte_match.h"

namespace greynic::flows {
namespace {

constexpr std::string_view kQueuePrefix = "queue:";
constexpr std::uint16_t kVlanType = 0x8100;

template <typename Configuration>
Configuration& add(RteRule& made, rte_flow_action_type type) {
  auto* memory = reinterpret_cast<Configuration*>(memory_for(made, sizeof(Configuration)));
  made.actions.push_back({type, memory});
  return *memory;
}

void add(RteRule& made, rte_flow_action_type type) { made.actions.push_back({type, nullptr}); }

template <typename Item>
void add_outer(RteRule& made, std::vector<rte_flow_item>& items, rte_flow_item_type type,
               const Item& spec) {
  auto* memory = memory_for(made, sizeof spec);
  std::memcpy(memory, &spec, sizeof spec);
  items.push_back({.type = type, .spec = memory});
}

Result<void> put_encap(RteRule& made, const Action& action) {
  const auto tunnel = read_tunnel_options(action.text);
  if (!tunnel) return kRteRefusal.of(action, tunnel.error().message);
  std::vector<rte_flow_item> items;
  rte_flow_item_ipv4 network{};
  network.hdr.src_addr = htonl(tunnel->src);
  network.hdr.dst_addr = htonl(tunnel->dst);
  rte_flow_item_udp transport{};
  transport.hdr.dst_port = htons(tunnel->port);
  rte_flow_item_vxlan vxlan{};
  vxlan.flags = 0x08;  // the VNI is valid
  for (unsigned i = 0; i < 3; ++i) {
    vxlan.vni[i] = static_cast<std::uint8_t>(action.number >> (8 * (2 - i)));
  }
  add_outer(made, items, RTE_FLOW_ITEM_TYPE_ETH, rte_flow_item_eth{});
  add_outer(made, items, RTE_FLOW_ITEM_TYPE_IPV4, network);
  add_outer(made, items, RTE_FLOW_ITEM_TYPE_UDP, transport);
  add_outer(made, items, RTE_FLOW_ITEM_TYPE_VXLAN, vxlan);
  items.push_back({.type = RTE_FLOW_ITEM_TYPE_END});
  auto* list =
      reinterpret_cast<rte_flow_item*>(memory_for(made, items.size() * sizeof(rte_flow_item)));
  std::copy(items.begin(), items.end(), list);
  add<rte_flow_action_vxlan_encap>(made, RTE_FLOW_ACTION_TYPE_VXLAN_ENCAP).definition = list;
  return {};
}

Result<void> put_forward(RteRule& made, const Action& action) {
  std::string_view text = action.text;
  const bool queue = text.starts_with(kQueuePrefix);
  if (queue) text.remove_prefix(kQueuePrefix.size());
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return kRteRefusal.of(action, "ports are numbers there (DPDK's), and queues are queue:NUMBER");
  }
  if (queue) {
    add<rte_flow_action_queue>(made, RTE_FLOW_ACTION_TYPE_QUEUE).index = number;
  } else {
    add<rte_flow_action_ethdev>(made, RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT).port_id = number;
  }
  return {};
}

/// One action; `decides` becomes true when it says where the packet goes.
Result<void> put_action(RteRule& made, const Action& action, bool& decides) {
  if (const auto why = too_large(action)) return kRteRefusal.of(action, *why);
  switch (action.kind) {
    case ActionKind::kDrop:
      add(made, RTE_FLOW_ACTION_TYPE_DROP);
      decides = true;
      return {};
    case ActionKind::kForward:
      decides = true;
      return put_forward(made, action);
    case ActionKind::kJump:
      add<rte_flow_action_jump>(made, RTE_FLOW_ACTION_TYPE_JUMP).group =
          static_cast<std::uint32_t>(action.number);
      decides = true;
      return {};
    case ActionKind::kSetField:
      if (action.field != MatchField::kPacketMark ||
          action.bits != full_mask(MatchField::kPacketMark)) {
        return kRteRefusal.of(action, "only the whole packet_mark can be set");
      }
      add<rte_flow_action_mark>(made, RTE_FLOW_ACTION_TYPE_MARK).id =
          static_cast<std::uint32_t>(action.value);
      return {};
    case ActionKind::kVxlanEncap:
      return put_encap(made, action);
    case ActionKind::kVxlanDecap:
      add(made, RTE_FLOW_ACTION_TYPE_VXLAN_DECAP);
      return {};
    case ActionKind::kPushVlan:
      add<rte_flow_action_of_push_vlan>(made, RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN).ethertype =
          RTE_BE16(kVlanType);
      add<rte_flow_action_of_set_vlan_vid>(made, RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID).vlan_vid =
          htons(static_cast<std::uint16_t>(action.number));
      return {};
    case ActionKind::kPopVlan:
      add(made, RTE_FLOW_ACTION_TYPE_OF_POP_VLAN);
      return {};
    case ActionKind::kCount:
      (void)add<rte_flow_action_count>(made, RTE_FLOW_ACTION_TYPE_COUNT);
      return {};
    case ActionKind::kMeter:
      add<rte_flow_action_meter>(made, RTE_FLOW_ACTION_TYPE_METER).mtr_id =
          static_cast<std::uint32_t>(action.number);
      return {};
    case ActionKind::kOther:
      return kRteRefusal.of(action, "the words of another interface mean nothing there");
  }
  return kRteRefusal.of(action, "it is unknown");
}

}  // namespace

Result<RteRule> rte_rule_of(const FlowRule& rule) {
  RteRule made;
  made.name = to_string(rule.match);
  made.attributes.group = rule.table;
  made.attributes.priority = rule.priority;
  made.attributes.ingress = 1;
  if (auto put = put_rte_pattern(made, rule.match); !put) return pass_on(put);
  bool decides = rule.actions.empty();
  if (decides) add(made, RTE_FLOW_ACTION_TYPE_DROP);
  for (const Action& action : rule.actions) {
    if (auto put = put_action(made, action, decides); !put) return pass_on(put);
  }
  // A rule that only marks or counts lets the packet go on.
  if (!decides) add(made, RTE_FLOW_ACTION_TYPE_PASSTHRU);
  made.actions.push_back({RTE_FLOW_ACTION_TYPE_END, nullptr});
  return made;
}

}  // namespace greynic::flows
