/// What `tc -j filter show` prints: an array of filters, of which those of kind flower with options
/// are rules. Chains are tables; the smaller preference wins.

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>

#include "field_value.h"
#include "greynic/files/json_file.h"
#include "line_text.h"
#include "ovs_fields.h"
#include "readers.h"

namespace greynic::rules {
namespace {

using F = MatchField;
using nlohmann::json;

struct EtherType {
  std::string_view name;
  std::uint16_t number;
};
constexpr std::array kEtherTypes = {EtherType{"ip", 0x0800},      EtherType{"ipv4", 0x0800},
                                    EtherType{"ipv6", 0x86dd},    EtherType{"arp", 0x0806},
                                    EtherType{"rarp", 0x8035},    EtherType{"802.1Q", 0x8100},
                                    EtherType{"802.1q", 0x8100},  EtherType{"802.1ad", 0x88a8},
                                    EtherType{"802.1AD", 0x88a8}, EtherType{"mpls_uc", 0x8847}};

struct IpProtocol {
  std::string_view name;
  std::uint8_t number;
};
constexpr std::array kIpProtocols = {IpProtocol{"icmp", 1}, IpProtocol{"tcp", 6},
                                     IpProtocol{"udp", 17}, IpProtocol{"icmpv6", 58},
                                     IpProtocol{"sctp", 132}};

constexpr std::uint16_t kVlanType = 0x8100;
constexpr std::uint16_t kServiceVlanType = 0x88a8;

std::optional<std::uint64_t> ether_type_from(std::string_view text) {
  for (const EtherType& row : kEtherTypes) {
    if (row.name == text) return row.number;
  }
  const auto number = number_from(text);
  return number && *number <= 0xffff ? number : std::nullopt;
}

/// Text of a JSON string or whole number.
std::optional<std::string> text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  return std::nullopt;
}

/// The keys whose text is a masked value of one field.
struct FilterKey {
  std::string_view name;
  MatchField field;
};
constexpr std::array kKeys = {FilterKey{"dst_mac", F::kEthernetDst},
                              FilterKey{"src_mac", F::kEthernetSrc},
                              FilterKey{"vlan_prio", F::kVlanPriority},
                              FilterKey{"cvlan_prio", F::kSvlanPriority},
                              FilterKey{"src_port", F::kL4SrcPort},
                              FilterKey{"dst_port", F::kL4DstPort},
                              FilterKey{"tcp_flags", F::kTcpFlags},
                              FilterKey{"ip_ttl", F::kIpTtl},
                              FilterKey{"icmp_type", F::kIcmpType},
                              FilterKey{"icmp_code", F::kIcmpCode},
                              FilterKey{"type", F::kIcmpType},
                              FilterKey{"code", F::kIcmpCode},
                              FilterKey{"arp_sip", F::kArpSenderIpv4},
                              FilterKey{"arp_tip", F::kArpTargetIpv4},
                              FilterKey{"arp_op", F::kArpOperation},
                              FilterKey{"arp_sha", F::kArpSenderEthernet},
                              FilterKey{"arp_tha", F::kArpTargetEthernet},
                              FilterKey{"enc_src_ip", F::kTunnelIpv4Src},
                              FilterKey{"enc_dst_ip", F::kTunnelIpv4Dst},
                              FilterKey{"enc_key_id", F::kVxlanVni},
                              FilterKey{"ct_zone", F::kCtZone},
                              FilterKey{"ct_mark", F::kCtMark},
                              FilterKey{"ct_label", F::kCtLabel}};

/// Reads the keys of one filter; matches multiply where a port key is a range.
class KeyReader {
 public:
  KeyReader() : matches_(1) {}

  [[nodiscard]] std::vector<Match> take() { return std::move(matches_); }

  /// `mask` is what iproute2 keeps beside the value of some keys ("ip_tos_mask"), in hexadecimal.
  std::optional<Complaint> add(std::string_view key, const json& value, const std::string& mask) {
    if (key == "ip_flags" && value.is_object()) return add_fragment(value);
    if (value.is_object() && (key == "src_port" || key == "dst_port")) {
      return add_range(key == "src_port" ? F::kL4SrcPort : F::kL4DstPort, value);
    }
    auto text = text_of(value);
    if (!text) return fmt::format("'{}' must be a text or a whole number", shown(key));
    if (!mask.empty()) *text += "/0x" + mask;
    if (key == "tcp_flags") hexadecimal_mask(*text);
    if (key == "eth_type") return add_ether_type(*text);
    if (key == "vlan_id" || key == "cvlan_id") return add_vlan(key == "vlan_id", *text);
    if (key == "vlan_ethtype" || key == "cvlan_ethtype") return add_ether_type(*text);
    if (key == "ip_proto") return add_protocol(*text);
    if (key == "src_ip" || key == "dst_ip") return add_address(key == "src_ip", *text);
    if (key == "ip_tos") return add_tos(*text);
    if (key == "ip_flags") return add_fragment(*text);
    if (key == "arp_op" && (*text == "request" || *text == "reply")) {
      return set(F::kArpOperation,
                 Masked{*text == "request" ? 1U : 2U, full_mask(F::kArpOperation)}, key, *text);
    }
    if (key == "ct_state") return set(F::kCtState, ct_state_from(*text), key, *text);
    for (const FilterKey& row : kKeys) {
      if (row.name == key) return set(row.field, masked_from(row.field, *text), key, *text);
    }
    return fmt::format("'{}' is no flower key that greynic knows (docs/formats/rules.md)",
                       shown(key));
  }

  std::optional<Complaint> add_ether_type(std::string_view text) {
    if (text == "all") return std::nullopt;
    const auto number = ether_type_from(text);
    if (!number) return fmt::format("'{}' is no protocol of tc", shown(text));
    // flower says the tag's type first and the type behind it as vlan_ethtype.
    if (*number == kVlanType || *number == kServiceVlanType) {
      return set(F::kVlanPresent, Masked{1, 1}, "eth_type", text);
    }
    return set(F::kEtherType, Masked{*number, full_mask(F::kEtherType)}, "eth_type", text);
  }

 private:
  std::optional<Complaint> set(MatchField field, const std::optional<Masked>& masked,
                               std::string_view key, std::string_view text) {
    if (!masked) return fmt::format("'{}' is no value of {}", shown(text), shown(key));
    for (Match& match : matches_) match.set(field, masked->value, masked->bits);
    return std::nullopt;
  }

  std::optional<Complaint> add_range(MatchField field, const json& value) {
    const auto bound = [&](const char* name) -> std::optional<std::uint64_t> {
      const auto found = value.find(name);
      if (found == value.end() || !found->is_number_unsigned()) return std::nullopt;
      return found->get<std::uint64_t>();
    };
    const auto low = bound("start");
    const auto high = bound("end");
    if (!low || !high || *low > *high || *high > 65535) {
      return "a port range must read like {\"start\":1024,\"end\":2047}";
    }
    std::vector<Match> multiplied;
    for (const Match& match : matches_) {
      for (const Masked& part : prefixes_of_range(static_cast<std::uint32_t>(*low),
                                                  static_cast<std::uint32_t>(*high), 16)) {
        multiplied.push_back(match);
        multiplied.back().set(field, part.value, part.bits);
      }
    }
    matches_ = std::move(multiplied);
    return std::nullopt;
  }

  std::optional<Complaint> add_vlan(bool outer, const std::string& text) {
    if (auto no = set(outer ? F::kVlanPresent : F::kSvlanPresent, Masked{1, 1}, "", "")) {
      return no;
    }
    const MatchField field = outer ? F::kVlanId : F::kSvlanId;
    return set(field, masked_from(field, text), outer ? "vlan_id" : "cvlan_id", text);
  }

  std::optional<Complaint> add_protocol(const std::string& text) {
    for (const IpProtocol& row : kIpProtocols) {
      if (row.name == text) {
        return set(F::kIpProtocol, Masked{row.number, full_mask(F::kIpProtocol)}, "", "");
      }
    }
    return set(F::kIpProtocol, masked_from(F::kIpProtocol, text), "ip_proto", text);
  }

  std::optional<Complaint> add_address(bool source, const std::string& text) {
    const bool v6 = text.find(':') != std::string::npos;
    const MatchField field =
        source ? (v6 ? F::kIpv6Src : F::kIpv4Src) : (v6 ? F::kIpv6Dst : F::kIpv4Dst);
    return set(field, masked_from(field, text), source ? "src_ip" : "dst_ip", text);
  }

  std::optional<Complaint> add_tos(const std::string& text) {
    const auto tos = masked_from(F::kIpTtl, text);  // any field of 8 bits
    if (!tos) return fmt::format("'{}' is no value of ip_tos", shown(text));
    (void)set(F::kIpDscp, Masked{tos->value >> 2, tos->bits >> 2}, "", "");
    return set(F::kIpEcn, Masked{tos->value & 3, tos->bits & 3}, "", "");
  }

  /// "0x2/12": iproute2 writes the mask of TCP flags in hexadecimal too, without saying so.
  static void hexadecimal_mask(std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash != std::string::npos && text.compare(slash + 1, 2, "0x") != 0) {
      text.insert(slash + 1, "0x");
    }
  }

  /// {"frag":true,"firstfrag":false}, as iproute2 6 writes it.
  std::optional<Complaint> add_fragment(const json& flags) {
    const auto flag = [&](const char* name) -> std::optional<bool> {
      const auto found = flags.find(name);
      if (found == flags.end() || !found->is_boolean()) return std::nullopt;
      return found->get<bool>();
    };
    const auto fragment = flag("frag");
    const auto first = flag("firstfrag");
    if (!fragment) return "'ip_flags' without frag is nothing that a match field can hold";
    if (!*fragment) return add_fragment(std::string("nofrag"));
    if (!first) return add_fragment(std::string("frag"));
    return add_fragment(std::string(*first ? "frag/firstfrag" : "frag/nofirstfrag"));
  }

  std::optional<Complaint> add_fragment(const std::string& text) {
    if (text == "nofrag") return set(F::kIpFragment, fragment_from("no"), "", "");
    if (text == "frag") return set(F::kIpFragment, fragment_from("yes"), "", "");
    if (text == "frag/firstfrag") return set(F::kIpFragment, fragment_from("first"), "", "");
    if (text == "frag/nofirstfrag") return set(F::kIpFragment, fragment_from("later"), "", "");
    return fmt::format("'{}' is no value of ip_flags", shown(text));
  }

  std::vector<Match> matches_;
};

std::string member_text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// What is not understood is kept as compact JSON without the parts that change by themselves.
Action other_action(json action) {
  for (const char* name : {"order", "index", "ref", "bind", "installed", "last_used", "stats",
                           "used_hw_stats", "in_hw", "not_in_hw", "hw_count"}) {
    action.erase(name);
  }
  return Action::other(files::json_text(action));
}

Action action_from(const json& action, bool last) {
  const std::string kind = member_text(action, "kind");
  if (kind == "gact" && action.contains("control_action") &&
      action.at("control_action").is_object()) {
    const json& control = action.at("control_action");
    const std::string type = member_text(control, "type");
    if (type == "drop") return Action::drop();
    const auto chain = control.find("chain");
    if (type == "goto" && last && chain != control.end() && chain->is_number_unsigned()) {
      return Action::jump(chain->get<std::uint64_t>());
    }
  }
  if (kind == "mirred" && member_text(action, "mirred_action") == "redirect" &&
      member_text(action, "direction") == "egress" && !member_text(action, "to_dev").empty()) {
    return Action::forward(member_text(action, "to_dev"));
  }
  return other_action(action);
}

/// A whole number member of at most `most`; `standard` when it is not there, empty when it is
/// wrong.
std::optional<std::uint32_t> number_member(const json& object, const char* name, std::uint64_t most,
                                           std::uint32_t standard) {
  const auto found = object.find(name);
  if (found == object.end()) return standard;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > most) return std::nullopt;
  return static_cast<std::uint32_t>(found->get<std::uint64_t>());
}

Result<std::vector<FlowRule>> rules_of_filter(const json& filter, const std::string& source,
                                              const std::string& here) {
  const json& options = filter.at("options");
  FlowRule rule;
  const auto chain = number_member(filter, "chain", 0xffffffff, 0);
  const auto preference = number_member(filter, "pref", 0xffffffff, 0);
  if (!chain) return files::bad_value(source, here + "/chain", "must be a chain number");
  if (!preference) return files::bad_value(source, here + "/pref", "must be a preference");
  rule.table = *chain;
  rule.priority = *preference;

  KeyReader reader;
  const auto keys = options.find("keys");
  if (keys != options.end() && !keys->is_object()) {
    return files::bad_value(source, here + "/options/keys", "must be an object");
  }
  const bool types_itself = keys != options.end() && keys->contains("eth_type");
  if (filter.contains("protocol")) {
    const auto text = text_of(filter.at("protocol"));
    const auto number = ether_type_from(text.value_or(""));
    const bool tag = number == kVlanType || number == kServiceVlanType;
    // Its own type is that behind the tag, so the tag is said only by what it is filed under.
    if (types_itself && !tag) {
      // said again by the key
    } else if (const auto no = reader.add_ether_type(text.value_or(""))) {
      return files::bad_value(source, here + "/protocol", *no);
    }
  }
  if (keys != options.end()) {
    constexpr std::string_view kMask = "_mask";
    for (const auto& [key, value] : keys->items()) {
      if (key.ends_with(kMask) && keys->contains(key.substr(0, key.size() - kMask.size())))
        continue;
      const std::string mask = member_text(*keys, (key + std::string(kMask)).c_str());
      if (const auto no = reader.add(key, value, mask)) {
        return files::bad_value(source, here + "/options/keys", *no);
      }
    }
  }
  const auto actions = options.find("actions");
  if (actions != options.end()) {
    if (!actions->is_array()) {
      return files::bad_value(source, here + "/options/actions", "must be an array");
    }
    for (std::size_t i = 0; i < actions->size(); ++i) {
      if (!actions->at(i).is_object()) {
        return files::bad_value(source, fmt::format("{}/options/actions/{}", here, i),
                                "must be an object");
      }
      rule.actions.push_back(action_from(actions->at(i), i + 1 == actions->size()));
    }
  }
  std::vector<FlowRule> rules;
  for (Match& match : reader.take()) {
    rules.push_back(rule);
    rules.back().match = std::move(match);
  }
  return rules;
}

}  // namespace

Result<RuleSet> parse_tc_filters(std::string_view text, const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (!document->is_array()) {
    return files::bad_value(source, "", "must be the array that tc -j filter show prints");
  }
  RuleSet set{{}, source};
  for (std::size_t i = 0; i < document->size(); ++i) {
    const json& filter = document->at(i);
    const std::string here = fmt::format("/{}", i);
    if (!filter.is_object()) return files::bad_value(source, here, "must be a filter object");
    // Each preference is announced by an entry of its own that has no options, or only its handle.
    const auto options = filter.find("options");
    if (options == filter.end()) continue;
    if (!options->is_object()) {
      return files::bad_value(source, here + "/options", "must be an object");
    }
    const std::string kind = member_text(filter, "kind");
    if (kind != "flower") {
      return files::bad_value(
          source, here + "/kind",
          fmt::format("'{}' is not flower, the only kind that matches as an eSwitch does",
                      shown(kind)));
    }
    auto rules = rules_of_filter(filter, source, here);
    if (!rules) return pass_on(rules);
    if (auto room = room_for(set, rules->size(), "at " + here); !room) return pass_on(room);
    for (FlowRule& rule : *rules) {
      rule.from = {static_cast<std::uint32_t>(i)};
      set.rules.push_back(std::move(rule));
    }
  }
  if (set.rules.empty()) return fail(ErrorCode::kBadInput, source + ": holds no flower filter");
  return set;
}

}  // namespace greynic::rules
