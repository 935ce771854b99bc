#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_mirred.h>
#include <linux/tc_act/tc_skbedit.h>
#include <linux/tc_act/tc_tunnel_key.h>
#include <linux/tc_act/tc_vlan.h>

#include <cstring>

#include "common/action_limits.h"
#include "common/refusal.h"
#include "common/tunnel_options.h"
#include "greynic/core/text.h"
#include "tc/tc_flower.h"
#include "tc/tc_place.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// Names an action and opens its options; closed when it goes.
class OpenAction {
 public:
  OpenAction(os::NetlinkMessage& message, std::uint16_t number, std::string_view kind)
      : message_(message), action_(message.open(number)) {
    message_.put_text(TCA_ACT_KIND, kind);
    options_ = message_.open(TCA_ACT_OPTIONS);
  }
  OpenAction(const OpenAction&) = delete;
  OpenAction& operator=(const OpenAction&) = delete;
  ~OpenAction() {
    message_.close(options_);
    message_.close(action_);
  }

 private:
  os::NetlinkMessage& message_;
  std::size_t action_;
  std::size_t options_ = 0;
};

void put_gact(os::NetlinkMessage& message, std::uint16_t number, int control) {
  const OpenAction open(message, number, "gact");
  tc_gact parameters{};
  parameters.action = control;
  message.put_value(TCA_GACT_PARMS, parameters);
}

Result<void> put_encap(os::NetlinkMessage& message, std::uint16_t number, const Action& action,
                       int control) {
  const auto tunnel = read_tunnel_options(action.text);
  if (!tunnel) return kTcRefusal.of(action, tunnel.error().message);
  const OpenAction open(message, number, "tunnel_key");
  tc_tunnel_key parameters{};
  parameters.action = control;
  parameters.t_action = TCA_TUNNEL_KEY_ACT_SET;
  message.put_value(TCA_TUNNEL_KEY_PARMS, parameters);
  message.put_value(TCA_TUNNEL_KEY_ENC_IPV4_SRC, htonl(tunnel->src));
  message.put_value(TCA_TUNNEL_KEY_ENC_IPV4_DST, htonl(tunnel->dst));
  message.put_value(TCA_TUNNEL_KEY_ENC_KEY_ID, htonl(static_cast<std::uint32_t>(action.number)));
  message.put_value(TCA_TUNNEL_KEY_ENC_DST_PORT, htons(tunnel->port));
  return {};
}

/// One action; `control` is what the kernel does after it.
Result<void> put_action(os::NetlinkMessage& message, std::uint16_t number, const Action& action,
                        bool last, const os::LinkNumbers& ports) {
  const int control = last ? TC_ACT_OK : TC_ACT_PIPE;
  if (const auto why = too_large(action)) return kTcRefusal.of(action, *why);
  switch (action.kind) {
    case ActionKind::kDrop:
      if (!last) return kTcRefusal.of(action, "nothing can follow a drop");
      put_gact(message, number, TC_ACT_SHOT);
      return {};
    case ActionKind::kJump:
      if (!last) return kTcRefusal.of(action, "nothing can follow a jump");
      if (action.number > kLastChain) {
        return kTcRefusal.of(action, fmt::format("chains end at {}", kLastChain));
      }
      put_gact(message, number, TC_ACT_GOTO_CHAIN | static_cast<int>(action.number));
      return {};
    case ActionKind::kCount:
      put_gact(message, number, control);
      return {};
    case ActionKind::kForward: {
      const auto port = ports.find(action.text);
      if (port == ports.end()) return kTcRefusal.of(action, "there is no such interface");
      const OpenAction open(message, number, "mirred");
      tc_mirred parameters{};
      parameters.action = last ? TC_ACT_STOLEN : TC_ACT_PIPE;
      parameters.eaction = last ? TCA_EGRESS_REDIR : TCA_EGRESS_MIRROR;
      parameters.ifindex = static_cast<std::uint32_t>(port->second);
      message.put_value(TCA_MIRRED_PARMS, parameters);
      return {};
    }
    case ActionKind::kSetField: {
      if (action.field != F::kPacketMark)
        return kTcRefusal.of(action, "only packet_mark can be set");
      const OpenAction open(message, number, "skbedit");
      tc_skbedit parameters{};
      parameters.action = control;
      message.put_value(TCA_SKBEDIT_PARMS, parameters);
      message.put_value(TCA_SKBEDIT_MARK, static_cast<std::uint32_t>(action.value));
      message.put_value(TCA_SKBEDIT_MASK, static_cast<std::uint32_t>(action.bits));
      return {};
    }
    case ActionKind::kPushVlan: {
      if (action.number == 0xfff)
        return kTcRefusal.of(action, "VLAN id 4095 is reserved, and not pushed");
      const OpenAction open(message, number, "vlan");
      tc_vlan parameters{};
      parameters.action = control;
      parameters.v_action = TCA_VLAN_ACT_PUSH;
      message.put_value(TCA_VLAN_PARMS, parameters);
      message.put_value(TCA_VLAN_PUSH_VLAN_ID, static_cast<std::uint16_t>(action.number));
      message.put_value(TCA_VLAN_PUSH_VLAN_PROTOCOL, htons(ETH_P_8021Q));
      return {};
    }
    case ActionKind::kPopVlan: {
      const OpenAction open(message, number, "vlan");
      tc_vlan parameters{};
      parameters.action = control;
      parameters.v_action = TCA_VLAN_ACT_POP;
      message.put_value(TCA_VLAN_PARMS, parameters);
      return {};
    }
    case ActionKind::kVxlanEncap:
      return put_encap(message, number, action, control);
    case ActionKind::kVxlanDecap: {
      const OpenAction open(message, number, "tunnel_key");
      tc_tunnel_key parameters{};
      parameters.action = control;
      parameters.t_action = TCA_TUNNEL_KEY_ACT_RELEASE;
      message.put_value(TCA_TUNNEL_KEY_PARMS, parameters);
      return {};
    }
    case ActionKind::kMeter:
      return kTcRefusal.of(action, "this driver makes no policers");
    case ActionKind::kOther:
      return kTcRefusal.of(action, "the words of another interface mean nothing there");
  }
  return kTcRefusal.of(action, "it is unknown");
}

using Attributes = std::map<std::uint16_t, os::ByteView>;

Attributes attributes_in(os::ByteView payload) {
  Attributes found;
  os::each_attribute(payload, [&](std::uint16_t type, os::ByteView value) { found[type] = value; });
  return found;
}

template <typename T>
T value_in(const Attributes& attributes, std::uint16_t type) {
  T value{};
  const auto found = attributes.find(type);
  if (found != attributes.end()) {
    std::memcpy(&value, found->second.data(), std::min(sizeof value, found->second.size()));
  }
  return value;
}

std::string text_in(const Attributes& attributes, std::uint16_t type) {
  const auto found = attributes.find(type);
  if (found == attributes.end() || found->second.empty()) return "";
  return {reinterpret_cast<const char*>(found->second.data()), found->second.size() - 1};
}

std::string name_of(int index, const os::LinkNumbers& ports) {
  for (const auto& [name, number] : ports) {
    if (number == index) return name;
  }
  return std::to_string(index);
}

Result<Action> read_action(const std::string& kind, const Attributes& options,
                           const os::LinkNumbers& ports) {
  if (kind == "gact") {
    const int control = value_in<tc_gact>(options, TCA_GACT_PARMS).action;
    if (control == TC_ACT_SHOT) return Action::drop();
    if (control == TC_ACT_OK || control == TC_ACT_PIPE) return Action{.kind = ActionKind::kCount};
    if ((control & ~TC_ACT_EXT_VAL_MASK) == TC_ACT_GOTO_CHAIN) {
      return Action::jump(static_cast<std::uint64_t>(control & TC_ACT_EXT_VAL_MASK));
    }
  }
  if (kind == "mirred") {
    const auto parameters = value_in<tc_mirred>(options, TCA_MIRRED_PARMS);
    if (parameters.eaction == TCA_EGRESS_REDIR || parameters.eaction == TCA_EGRESS_MIRROR) {
      return Action::forward(name_of(static_cast<int>(parameters.ifindex), ports));
    }
  }
  if (kind == "skbedit" && options.contains(TCA_SKBEDIT_MARK)) {
    Action action{.kind = ActionKind::kSetField, .field = F::kPacketMark};
    action.value = value_in<std::uint32_t>(options, TCA_SKBEDIT_MARK);
    action.bits = options.contains(TCA_SKBEDIT_MASK)
                      ? U128{value_in<std::uint32_t>(options, TCA_SKBEDIT_MASK)}
                      : full_mask(F::kPacketMark);
    return action;
  }
  if (kind == "vlan") {
    const auto parameters = value_in<tc_vlan>(options, TCA_VLAN_PARMS);
    if (parameters.v_action == TCA_VLAN_ACT_POP) return Action{.kind = ActionKind::kPopVlan};
    if (parameters.v_action == TCA_VLAN_ACT_PUSH) {
      return Action{.kind = ActionKind::kPushVlan,
                    .number = value_in<std::uint16_t>(options, TCA_VLAN_PUSH_VLAN_ID)};
    }
  }
  if (kind == "tunnel_key") {
    const auto parameters = value_in<tc_tunnel_key>(options, TCA_TUNNEL_KEY_PARMS);
    if (parameters.t_action == TCA_TUNNEL_KEY_ACT_RELEASE) {
      return Action{.kind = ActionKind::kVxlanDecap};
    }
    const TunnelOptions tunnel = {
        ntohl(value_in<std::uint32_t>(options, TCA_TUNNEL_KEY_ENC_IPV4_SRC)),
        ntohl(value_in<std::uint32_t>(options, TCA_TUNNEL_KEY_ENC_IPV4_DST)),
        ntohs(value_in<std::uint16_t>(options, TCA_TUNNEL_KEY_ENC_DST_PORT))};
    return Action{.kind = ActionKind::kVxlanEncap,
                  .number = ntohl(value_in<std::uint32_t>(options, TCA_TUNNEL_KEY_ENC_KEY_ID)),
                  .text = to_text(tunnel)};
  }
  return fail(
      ErrorCode::kUnsupported,
      fmt::format("a filter there has an action ({}) that greynic cannot read", printable(kind)));
}

void read_counters(const Attributes& action, TcActions& result) {
  const auto stats = action.find(TCA_ACT_STATS);
  if (stats == action.end()) return;
  const Attributes parts = attributes_in(stats->second);
  const auto basic = value_in<gnet_stats_basic>(parts, TCA_STATS_BASIC);
  result.bytes = basic.bytes;
  result.packets = parts.contains(TCA_STATS_PKT64) ? value_in<std::uint64_t>(parts, TCA_STATS_PKT64)
                                                   : basic.packets;
}

}  // namespace

Result<void> put_tc_actions(os::NetlinkMessage& message, const std::vector<Action>& actions,
                            const os::LinkNumbers& ports) {
  // More than the kernel's TCA_ACT_MAX_PRIO are refused by it in silence.
  constexpr std::size_t kMost = 32;
  if (actions.size() > kMost) {
    return fail(ErrorCode::kUnsupported, fmt::format("tc takes at most {} actions a rule", kMost));
  }
  const std::size_t list = message.open(TCA_FLOWER_ACT);
  std::uint16_t number = 1;
  if (actions.empty()) put_gact(message, number, TC_ACT_SHOT);
  for (const Action& action : actions) {
    if (auto put = put_action(message, number, action, number == actions.size(), ports); !put) {
      return put;
    }
    ++number;
  }
  message.close(list);
  return {};
}

Result<TcActions> read_tc_actions(os::ByteView list, const os::LinkNumbers& ports) {
  std::map<std::uint16_t, Attributes> in_order;
  os::each_attribute(list, [&](std::uint16_t number, os::ByteView value) {
    in_order[number] = attributes_in(value);
  });
  TcActions result;
  for (const auto& [number, action] : in_order) {
    if (number == in_order.begin()->first) read_counters(action, result);
    const auto options = action.find(TCA_ACT_OPTIONS);
    auto read =
        read_action(text_in(action, TCA_ACT_KIND),
                    options == action.end() ? Attributes{} : attributes_in(options->second), ports);
    if (!read) return pass_on(read);
    result.actions.push_back(std::move(*read));
  }
  return result;
}

}  // namespace greynic::flows
