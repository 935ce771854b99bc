#include "rte_reading.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rte_byteorder.h>

#include <bit>

namespace greynic::flows {
namespace {

using F = MatchField;

U128 number(const std::uint8_t* bytes, std::size_t count) {
  U128 value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}
U128 number(const rte_ether_addr& address) { return number(address.addr_bytes, 6); }

/// One item while it is read: its fields go into the match, and every bit of its mask must be one
/// of theirs.
template <typename Item>
class Reading {
 public:
  Reading(const rte_flow_item& item, Match& match) : match_(match) {
    if (item.spec == nullptr) return;
    spec_ = static_cast<const Item*>(item.spec);
    mask_ = static_cast<const Item*>(item.mask);
    const auto* bytes = static_cast<const std::uint8_t*>(item.mask);
    for (std::size_t i = 0; i < sizeof(Item); ++i) open_ += std::popcount(bytes[i]);
  }
  ~Reading() { EXPECT_EQ(open_, 0) << "bits of a mask that belong to no field"; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  template <typename Get>
  void field(MatchField field, const Get& get) {
    if (spec_ == nullptr) return;
    const U128 bits = get(*mask_);
    if (bits == 0) return;
    match_.set(field, get(*spec_) & bits, bits);
    open_ -= std::popcount(static_cast<std::uint64_t>(bits)) +
             std::popcount(static_cast<std::uint64_t>(bits >> 64));
  }

 private:
  Match& match_;
  const Item* spec_ = nullptr;
  const Item* mask_ = nullptr;
  int open_ = 0;
};

/// Which fields an item of the outer or of the inner packet holds.
struct Side {
  F ethernet_dst, ethernet_src, ether_type, ip_protocol, ipv4_src, ipv4_dst, ipv6_src, ipv6_dst,
      source_port, destination_port;
};
constexpr Side kOuter = {F::kEthernetDst, F::kEthernetSrc, F::kEtherType, F::kIpProtocol,
                         F::kIpv4Src,     F::kIpv4Dst,     F::kIpv6Src,   F::kIpv6Dst,
                         F::kL4SrcPort,   F::kL4DstPort};
constexpr Side kInner = {F::kInnerEthernetDst, F::kInnerEthernetSrc, F::kInnerEtherType,
                         F::kInnerIpProtocol,  F::kInnerIpv4Src,     F::kInnerIpv4Dst,
                         F::kInnerIpv6Src,     F::kInnerIpv6Dst,     F::kInnerL4SrcPort,
                         F::kInnerL4DstPort};

void read_network(const rte_flow_item& item, const Side& side, Match& match) {
  if (item.type == RTE_FLOW_ITEM_TYPE_IPV4) {
    match.set(side.ether_type, 0x0800);
    Reading<rte_flow_item_ipv4> reading(item, match);
    reading.field(F::kIpDscp, [](const auto& ip) { return U128(ip.hdr.type_of_service >> 2); });
    reading.field(F::kIpEcn, [](const auto& ip) { return U128(ip.hdr.type_of_service & 3); });
    reading.field(F::kIpTtl, [](const auto& ip) { return U128(ip.hdr.time_to_live); });
    reading.field(side.ip_protocol, [](const auto& ip) { return U128(ip.hdr.next_proto_id); });
    reading.field(side.ipv4_src, [](const auto& ip) { return U128(ntohl(ip.hdr.src_addr)); });
    reading.field(side.ipv4_dst, [](const auto& ip) { return U128(ntohl(ip.hdr.dst_addr)); });
    return;
  }
  match.set(side.ether_type, 0x86dd);
  Reading<rte_flow_item_ipv6> reading(item, match);
  const auto first = [](const auto& ip) { return ntohl(ip.hdr.vtc_flow); };
  reading.field(F::kIpDscp, [&](const auto& ip) { return U128(first(ip) >> 22 & 0x3f); });
  reading.field(F::kIpEcn, [&](const auto& ip) { return U128(first(ip) >> 20 & 3); });
  reading.field(F::kIpv6FlowLabel, [&](const auto& ip) { return U128(first(ip) & 0xfffff); });
  reading.field(F::kIpTtl, [](const auto& ip) { return U128(ip.hdr.hop_limits); });
  reading.field(side.ip_protocol, [](const auto& ip) { return U128(ip.hdr.proto); });
  reading.field(side.ipv6_src, [](const auto& ip) { return number(ip.hdr.src_addr, 16); });
  reading.field(side.ipv6_dst, [](const auto& ip) { return number(ip.hdr.dst_addr, 16); });
}

template <typename Item>
void read_ports(const rte_flow_item& item, const Side& side, unsigned protocol, Match& match) {
  match.set(side.ip_protocol, protocol);
  Reading<Item> reading(item, match);
  reading.field(side.source_port, [](const auto& l4) { return U128(ntohs(l4.hdr.src_port)); });
  reading.field(side.destination_port, [](const auto& l4) { return U128(ntohs(l4.hdr.dst_port)); });
  if constexpr (std::is_same_v<Item, rte_flow_item_tcp>) {
    reading.field(F::kTcpFlags, [](const auto& tcp) {
      return U128((tcp.hdr.data_off & 0xfU) << 8 | tcp.hdr.tcp_flags);
    });
  }
}

void read_ethernet(const rte_flow_item& item, const Side& side, Match& match) {
  Reading<rte_flow_item_eth> reading(item, match);
  reading.field(side.ethernet_dst, [](const auto& eth) { return number(eth.hdr.dst_addr); });
  reading.field(side.ethernet_src, [](const auto& eth) { return number(eth.hdr.src_addr); });
  reading.field(side.ether_type, [](const auto& eth) { return U128(ntohs(eth.hdr.ether_type)); });
  reading.field(F::kVlanPresent, [](const auto& eth) { return U128(eth.has_vlan); });
}

void read_tag(const rte_flow_item& item, bool second, Match& match) {
  match.set(second ? F::kSvlanPresent : F::kVlanPresent, 1);
  Reading<rte_flow_item_vlan> reading(item, match);
  reading.field(second ? F::kSvlanPriority : F::kVlanPriority,
                [](const auto& tag) { return U128(ntohs(tag.hdr.vlan_tci) >> 13); });
  reading.field(second ? F::kSvlanId : F::kVlanId,
                [](const auto& tag) { return U128(ntohs(tag.hdr.vlan_tci) & 0xfff); });
  reading.field(F::kEtherType, [](const auto& tag) { return U128(ntohs(tag.hdr.eth_proto)); });
  reading.field(F::kSvlanPresent, [](const auto& tag) { return U128(tag.has_more_vlan); });
}

void read_arp(const rte_flow_item& item, Match& match) {
  match.set(F::kEtherType, 0x0806);
  Reading<rte_flow_item_arp_eth_ipv4> reading(item, match);
  reading.field(F::kArpOperation, [](const auto& arp) { return U128(ntohs(arp.op)); });
  reading.field(F::kArpSenderEthernet, [](const auto& arp) { return number(arp.sha); });
  reading.field(F::kArpSenderIpv4, [](const auto& arp) { return U128(ntohl(arp.spa)); });
  reading.field(F::kArpTargetEthernet, [](const auto& arp) { return number(arp.tha); });
  reading.field(F::kArpTargetIpv4, [](const auto& arp) { return U128(ntohl(arp.tpa)); });
}

Match read_items(const rte_flow_item* item) {
  Match match;
  const Side* side = &kOuter;
  int tags = 0;
  for (; item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
    switch (item->type) {
      case RTE_FLOW_ITEM_TYPE_META:
        Reading<rte_flow_item_meta>(*item, match).field(F::kMetadata, [](const auto& meta) {
          return U128(meta.data);
        });
        break;
      case RTE_FLOW_ITEM_TYPE_MARK:
        Reading<rte_flow_item_mark>(*item, match).field(F::kPacketMark, [](const auto& mark) {
          return U128(mark.id);
        });
        break;
      case RTE_FLOW_ITEM_TYPE_ETH:
        read_ethernet(*item, *side, match);
        break;
      case RTE_FLOW_ITEM_TYPE_VLAN:
        read_tag(*item, tags++ > 0, match);
        break;
      case RTE_FLOW_ITEM_TYPE_IPV4:
      case RTE_FLOW_ITEM_TYPE_IPV6:
        read_network(*item, *side, match);
        break;
      case RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4:
        read_arp(*item, match);
        break;
      case RTE_FLOW_ITEM_TYPE_ICMP: {
        match.set(F::kIpProtocol, 1);
        Reading<rte_flow_item_icmp> reading(*item, match);
        reading.field(F::kIcmpType, [](const auto& icmp) { return U128(icmp.hdr.icmp_type); });
        reading.field(F::kIcmpCode, [](const auto& icmp) { return U128(icmp.hdr.icmp_code); });
        break;
      }
      case RTE_FLOW_ITEM_TYPE_ICMP6: {
        match.set(F::kIpProtocol, 58);
        Reading<rte_flow_item_icmp6> reading(*item, match);
        reading.field(F::kIcmpType, [](const auto& icmp) { return U128(icmp.type); });
        reading.field(F::kIcmpCode, [](const auto& icmp) { return U128(icmp.code); });
        break;
      }
      case RTE_FLOW_ITEM_TYPE_TCP:
        read_ports<rte_flow_item_tcp>(*item, *side, 6, match);
        break;
      case RTE_FLOW_ITEM_TYPE_UDP:
        read_ports<rte_flow_item_udp>(*item, *side, 17, match);
        break;
      case RTE_FLOW_ITEM_TYPE_SCTP:
        read_ports<rte_flow_item_sctp>(*item, *side, 132, match);
        break;
      case RTE_FLOW_ITEM_TYPE_GRE:
        match.set(F::kIpProtocol, 47);
        break;
      case RTE_FLOW_ITEM_TYPE_GRE_KEY:
        Reading<rte_be32_t>(*item, match).field(F::kGreKey, [](rte_be32_t key) {
          return U128(ntohl(key));
        });
        break;
      case RTE_FLOW_ITEM_TYPE_VXLAN:
        Reading<rte_flow_item_vxlan>(*item, match).field(F::kVxlanVni, [](const auto& vxlan) {
          return number(vxlan.vni, 3);
        });
        side = &kInner;
        break;
      default:
        ADD_FAILURE() << "an item of kind " << static_cast<int>(item->type);
    }
  }
  return match;
}

std::string ipv4_text(rte_be32_t address) {
  return field_value_to_string(F::kIpv4Src, ntohl(address));
}

Action read_encap(const void* settings) {
  const rte_flow_item* item = static_cast<const rte_flow_action_vxlan_encap*>(settings)->definition;
  Action action{.kind = ActionKind::kVxlanEncap};
  EXPECT_EQ(item[0].type, RTE_FLOW_ITEM_TYPE_ETH);
  EXPECT_EQ(item[1].type, RTE_FLOW_ITEM_TYPE_IPV4);
  EXPECT_EQ(item[2].type, RTE_FLOW_ITEM_TYPE_UDP);
  EXPECT_EQ(item[3].type, RTE_FLOW_ITEM_TYPE_VXLAN);
  EXPECT_EQ(item[4].type, RTE_FLOW_ITEM_TYPE_END);
  const auto* ip = static_cast<const rte_flow_item_ipv4*>(item[1].spec);
  const auto* udp = static_cast<const rte_flow_item_udp*>(item[2].spec);
  const auto* vxlan = static_cast<const rte_flow_item_vxlan*>(item[3].spec);
  EXPECT_EQ(vxlan->flags, 0x08);
  action.number = static_cast<std::uint64_t>(number(vxlan->vni, 3));
  action.text = fmt::format("src={},dst={},port={}", ipv4_text(ip->hdr.src_addr),
                            ipv4_text(ip->hdr.dst_addr), ntohs(udp->hdr.dst_port));
  return action;
}

template <typename Settings>
const Settings& settings_of(const rte_flow_action& action) {
  return *static_cast<const Settings*>(action.conf);
}

std::vector<Action> read_actions(const rte_flow_action* action) {
  std::vector<Action> actions;
  for (; action->type != RTE_FLOW_ACTION_TYPE_END; ++action) {
    switch (action->type) {
      case RTE_FLOW_ACTION_TYPE_DROP:
        actions.push_back(Action::drop());
        break;
      case RTE_FLOW_ACTION_TYPE_QUEUE:
        actions.push_back(Action::forward(
            fmt::format("queue:{}", settings_of<rte_flow_action_queue>(*action).index)));
        break;
      case RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT:
        actions.push_back(
            Action::forward(std::to_string(settings_of<rte_flow_action_ethdev>(*action).port_id)));
        break;
      case RTE_FLOW_ACTION_TYPE_JUMP:
        actions.push_back(Action::jump(settings_of<rte_flow_action_jump>(*action).group));
        break;
      case RTE_FLOW_ACTION_TYPE_MARK:
        actions.push_back({.kind = ActionKind::kSetField,
                           .field = F::kPacketMark,
                           .value = settings_of<rte_flow_action_mark>(*action).id,
                           .bits = full_mask(F::kPacketMark)});
        break;
      case RTE_FLOW_ACTION_TYPE_VXLAN_ENCAP:
        actions.push_back(read_encap(action->conf));
        break;
      case RTE_FLOW_ACTION_TYPE_VXLAN_DECAP:
        actions.push_back({.kind = ActionKind::kVxlanDecap});
        break;
      case RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN: {
        EXPECT_EQ(ntohs(settings_of<rte_flow_action_of_push_vlan>(*action).ethertype), 0x8100);
        ++action;
        EXPECT_EQ(action->type, RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID);
        const auto id = settings_of<rte_flow_action_of_set_vlan_vid>(*action).vlan_vid;
        actions.push_back({.kind = ActionKind::kPushVlan, .number = ntohs(id)});
        break;
      }
      case RTE_FLOW_ACTION_TYPE_OF_POP_VLAN:
        actions.push_back({.kind = ActionKind::kPopVlan});
        break;
      case RTE_FLOW_ACTION_TYPE_COUNT:
        actions.push_back({.kind = ActionKind::kCount});
        break;
      case RTE_FLOW_ACTION_TYPE_METER:
        actions.push_back({.kind = ActionKind::kMeter,
                           .number = settings_of<rte_flow_action_meter>(*action).mtr_id});
        break;
      case RTE_FLOW_ACTION_TYPE_PASSTHRU:
        EXPECT_EQ(action[1].type, RTE_FLOW_ACTION_TYPE_END) << "the packet goes on last of all";
        break;
      default:
        ADD_FAILURE() << "an action of kind " << static_cast<int>(action->type);
    }
  }
  return actions;
}

}  // namespace

FlowRule read_rte(const rte_flow_attr& attributes, const rte_flow_item* items,
                  const rte_flow_action* actions) {
  EXPECT_EQ(attributes.ingress, 1U);
  FlowRule rule;
  rule.table = attributes.group;
  rule.priority = attributes.priority;
  rule.match = read_items(items);
  rule.actions = read_actions(actions);
  return rule;
}

}  // namespace greynic::flows
