/// Patterns and actions as testpmd spells them ("flow create" in DPDK's testpmd guide).

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "common/action_limits.h"
#include "common/named_headers.h"
#include "common/tunnel_options.h"
#include "words/words.h"

namespace greynic::flows {
namespace {

using F = MatchField;

tl::unexpected<Error> no_testpmd_word(std::string_view what, std::string_view why) {
  return fail(ErrorCode::kUnsupported, fmt::format("testpmd has no words for {}: {}", what, why));
}

/// A pattern in the making: which fields of the match have been said.
class TestpmdPattern {
 public:
  explicit TestpmdPattern(const Match& match) : match_(match) {}

  void item(std::string_view name) {
    text_ += fmt::format("{}{}", text_.empty() ? "" : " / ", name);
  }
  /// " src is 10.0.0.1", or with a mask; nothing where the match does not look at the field.
  void word(std::string_view token, MatchField field) {
    for (const FieldMatch& part : match_.fields()) {
      if (part.field != field) continue;
      said_.push_back(field);
      const std::string value = field_value_to_string(field, part.value);
      if (part.bits == full_mask(field)) {
        text_ += fmt::format(" {} is {}", token, value);
      } else {
        text_ += fmt::format(" {0} spec {1} {0} mask {2}", token, value,
                             field_value_to_string(field, part.bits));
      }
    }
    for (const FieldRange& range : match_.ranges()) {
      if (range.field != field) continue;
      said_.push_back(field);
      text_ += fmt::format(
          " {0} spec {1} {0} last {2} {0} mask {3}", token, field_value_to_string(field, range.low),
          field_value_to_string(field, range.high), field_value_to_string(field, full_mask(field)));
    }
  }
  /// A byte that two fields share.
  void byte(std::string_view token, MatchField high, unsigned shift, MatchField low) {
    unsigned value = 0;
    unsigned bits = 0;
    for (const FieldMatch& part : match_.fields()) {
      if (part.field != high && part.field != low) continue;
      said_.push_back(part.field);
      const unsigned by = part.field == high ? shift : 0;
      value |= static_cast<unsigned>(part.value) << by;
      bits |= static_cast<unsigned>(part.bits) << by;
    }
    if (bits != 0) text_ += fmt::format(" {0} spec {1:#x} {0} mask {2:#x}", token, value, bits);
  }
  /// The item that stands here says the field.
  void implied(MatchField field) { said_.push_back(field); }
  [[nodiscard]] bool looks_at(MatchField field) const { return match_.mask().bits(field) != 0; }
  [[nodiscard]] const Match& match() const { return match_; }

  [[nodiscard]] Result<std::string> text() const {
    for (const MatchField field : fields_looked_at(match_)) {
      if (std::find(said_.begin(), said_.end(), field) == said_.end()) {
        return no_testpmd_word(info(field).name, "it takes no such field there");
      }
    }
    return text_;
  }

 private:
  const Match& match_;
  std::string text_;
  std::vector<MatchField> said_;
};

/// Ethernet and its tags, and the type behind them where no item stands for it.
void put_links(TestpmdPattern& pattern, bool network_follows) {
  pattern.item("eth");
  pattern.word("dst", F::kEthernetDst);
  pattern.word("src", F::kEthernetSrc);
  const bool tagged = exact_value(pattern.match(), F::kVlanPresent) == U128{1};
  if (!tagged) {
    pattern.word("has_vlan", F::kVlanPresent);
    if (!network_follows) pattern.word("type", F::kEtherType);
    return;
  }
  pattern.implied(F::kVlanPresent);
  pattern.item("vlan");
  pattern.word("vid", F::kVlanId);
  pattern.word("pcp", F::kVlanPriority);
  if (exact_value(pattern.match(), F::kSvlanPresent) == U128{1}) {
    pattern.implied(F::kSvlanPresent);
    pattern.item("vlan");
    pattern.word("vid", F::kSvlanId);
    pattern.word("pcp", F::kSvlanPriority);
  } else {
    pattern.word("has_more_vlan", F::kSvlanPresent);
  }
  if (!network_follows) pattern.word("inner_type", F::kEtherType);
}

struct TestpmdTransport {
  unsigned protocol;
  std::string_view item;
};
constexpr std::array kTestpmdTransports = {
    TestpmdTransport{1, "icmp"}, TestpmdTransport{58, "icmp6"}, TestpmdTransport{6, "tcp"},
    TestpmdTransport{17, "udp"}, TestpmdTransport{132, "sctp"}, TestpmdTransport{47, "gre"}};

void put_transport(TestpmdPattern& pattern, std::string_view item) {
  pattern.item(item);
  if (item.starts_with("icmp")) {
    pattern.word("type", F::kIcmpType);
    pattern.word("code", F::kIcmpCode);
  } else if (item != "gre") {
    pattern.word("src", F::kL4SrcPort);
    pattern.word("dst", F::kL4DstPort);
  }
  if (item == "tcp") pattern.word("flags", F::kTcpFlags);
  if (item == "gre" && pattern.looks_at(F::kGreKey)) {
    pattern.item("gre_key");
    pattern.word("value", F::kGreKey);
  }
  if (item == "udp" && pattern.looks_at(F::kVxlanVni)) {
    pattern.item("vxlan");
    pattern.word("vni", F::kVxlanVni);
  }
}

void put_ip(TestpmdPattern& pattern, bool version6) {
  pattern.item(version6 ? "ipv6" : "ipv4");
  pattern.word("src", version6 ? F::kIpv6Src : F::kIpv4Src);
  pattern.word("dst", version6 ? F::kIpv6Dst : F::kIpv4Dst);
  pattern.byte(version6 ? "tc" : "tos", F::kIpDscp, 2, F::kIpEcn);
  pattern.word(version6 ? "hop" : "ttl", F::kIpTtl);
  if (version6) pattern.word("flow", F::kIpv6FlowLabel);
  const auto protocol = exact_value(pattern.match(), F::kIpProtocol);
  for (const TestpmdTransport& row : kTestpmdTransports) {
    if (protocol != U128{row.protocol}) continue;
    pattern.implied(F::kIpProtocol);
    put_transport(pattern, row.item);
    return;
  }
  pattern.word("proto", F::kIpProtocol);
}

Result<std::string> pattern_words(const Match& match) {
  constexpr unsigned kIpv4Type = 0x0800;
  constexpr unsigned kIpv6Type = 0x86dd;
  constexpr unsigned kArpType = 0x0806;
  for (const MatchField field : fields_looked_at(match)) {
    if (const auto missing = missing_header(match, field)) {
      return no_testpmd_word(info(field).name, *missing);
    }
  }
  TestpmdPattern pattern(match);
  if (pattern.looks_at(F::kMetadata)) {
    pattern.item("meta");
    pattern.word("data", F::kMetadata);
  }
  if (pattern.looks_at(F::kPacketMark)) {
    pattern.item("mark");
    pattern.word("id", F::kPacketMark);
  }
  const auto type = exact_value(match, F::kEtherType);
  const bool ip = type == U128{kIpv4Type} || type == U128{kIpv6Type};
  const bool arp = type == U128{kArpType};
  put_links(pattern, ip || arp);
  if (ip || arp) pattern.implied(F::kEtherType);
  if (ip) put_ip(pattern, type == U128{kIpv6Type});
  if (arp) {
    pattern.item("arp_eth_ipv4");
    pattern.word("sha", F::kArpSenderEthernet);
    pattern.word("spa", F::kArpSenderIpv4);
    pattern.word("tha", F::kArpTargetEthernet);
    pattern.word("tpa", F::kArpTargetIpv4);
  }
  return pattern.text();
}

Result<std::string> testpmd_action(const Action& action) {
  constexpr std::string_view kQueueWord = "queue:";
  if (const auto why = too_large(action)) return no_testpmd_word(to_string(action), *why);
  switch (action.kind) {
    case ActionKind::kDrop:
      return std::string("drop");
    case ActionKind::kJump:
      return fmt::format("jump group {}", action.number);
    case ActionKind::kCount:
      return std::string("count");
    case ActionKind::kMeter:
      return fmt::format("meter mtr_id {}", action.number);
    case ActionKind::kForward: {
      const bool queue = action.text.starts_with(kQueueWord);
      const std::string number = queue ? action.text.substr(kQueueWord.size()) : action.text;
      if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) {
        return no_testpmd_word(to_string(action),
                               "ports are numbers there (DPDK's), and queues are queue:NUMBER");
      }
      return fmt::format("{} {}", queue ? "queue index" : "represented_port ethdev_port_id",
                         number);
    }
    case ActionKind::kSetField:
      if (action.field != F::kPacketMark || action.bits != full_mask(F::kPacketMark)) {
        return no_testpmd_word(to_string(action), "only the whole packet_mark can be set");
      }
      return fmt::format("mark id {}", static_cast<std::uint32_t>(action.value));
    case ActionKind::kPushVlan:
      return fmt::format("of_push_vlan ethertype 0x8100 / of_set_vlan_vid vlan_vid {}",
                         action.number);
    case ActionKind::kPopVlan:
      return std::string("of_pop_vlan");
    case ActionKind::kVxlanDecap:
      return std::string("vxlan_decap");
    case ActionKind::kVxlanEncap:
      return no_testpmd_word(to_string(action), "set the tunnel with its command `set vxlan`");
    case ActionKind::kOther:
      break;
  }
  return no_testpmd_word(to_string(action), "it belongs to another interface");
}

}  // namespace

Result<std::string> testpmd_words(const FlowRule& rule) {
  auto pattern = pattern_words(rule.match);
  if (!pattern) return pattern;
  std::string actions = rule.actions.empty() ? "drop / " : "";
  bool decides = rule.actions.empty();
  for (const Action& action : rule.actions) {
    auto words = testpmd_action(action);
    if (!words) return words;
    actions += *words + " / ";
    decides = decides || action.kind == ActionKind::kDrop || action.kind == ActionKind::kJump ||
              action.kind == ActionKind::kForward;
  }
  if (!decides) actions += "passthru / ";  // a rule that only marks or counts
  return fmt::format("pattern {} / end actions {}end", *pattern, actions);
}

}  // namespace greynic::flows
