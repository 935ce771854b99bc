#include "ovs/ovs_read.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "greynic/rules/read_rules.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// The number after "key="; 0 when the key is not there.
std::uint64_t number_of(std::string_view line, std::string_view key) {
  const std::size_t place = line.find(key);
  if (place == std::string_view::npos) return 0;
  line.remove_prefix(place + key.size());
  const int base = line.starts_with("0x") ? 16 : 10;
  if (base == 16) line.remove_prefix(2);
  std::uint64_t value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value, base);
  return value;
}

std::vector<std::string> sorted_lines(std::string_view dump) {
  std::vector<std::string> lines;
  while (!dump.empty()) {
    const std::size_t end = dump.find('\n');
    std::string_view line = dump.substr(0, end);
    dump.remove_prefix(end == std::string_view::npos ? dump.size() : end + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.find("actions=") != std::string_view::npos) lines.emplace_back(line);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
    return number_of(a, "cookie=") < number_of(b, "cookie=");
  });
  return lines;
}

/// The field behind a name that set_field prints; ports have one name for each protocol.
std::optional<MatchField> written_field(std::string_view name) {
  struct Alias {
    std::string_view name;
    MatchField field;
  };
  constexpr Alias kAliases[] = {
      {"ip_src", F::kIpv4Src},     {"ip_dst", F::kIpv4Dst},     {"tcp_src", F::kL4SrcPort},
      {"tcp_dst", F::kL4DstPort},  {"udp_src", F::kL4SrcPort},  {"udp_dst", F::kL4DstPort},
      {"sctp_src", F::kL4SrcPort}, {"sctp_dst", F::kL4DstPort}, {"ip_ecn", F::kIpEcn}};
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.field;
  }
  for (const MatchFieldInfo& row : match_fields()) {
    if (row.ovs == name) return row.field;
  }
  return std::nullopt;
}

/// The bits of "/24", "/255.255.0.255" or "/0xff00": addresses come back with the length of their
/// prefix where the mask is one.
std::optional<U128> mask_of(MatchField field, std::string_view text) {
  const FieldFormat format = info(field).format;
  const bool address = format == FieldFormat::kIpv4 || format == FieldFormat::kIpv6;
  if (!address || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return field_value_from_string(field, text);
  }
  unsigned length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  const unsigned width = info(field).width_bits;
  if (error != std::errc{} || length > width) return std::nullopt;
  return length == 0 ? U128{0} : full_mask(field) & ~(full_mask(field) >> (length - 1) >> 1);
}

/// "set_field:0x5/0xff->reg0" as an action; empty when it is something else.
std::optional<Action> set_field(std::string_view text) {
  if (!text.starts_with("set_field:")) return std::nullopt;
  text.remove_prefix(10);
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return std::nullopt;
  const auto field = written_field(text.substr(arrow + 2));
  if (!field) return std::nullopt;
  const std::string_view masked = text.substr(0, arrow);
  const std::size_t slash = masked.find('/');
  const auto value = field_value_from_string(*field, masked.substr(0, slash));
  const auto bits = slash == std::string_view::npos ? std::optional(full_mask(*field))
                                                    : mask_of(*field, masked.substr(slash + 1));
  if (!value || !bits) return std::nullopt;
  return Action{.kind = ActionKind::kSetField, .field = *field, .value = *value, .bits = *bits};
}

/// The tag id in what push_vlan is followed by; empty when it is not our way to write one.
std::optional<std::uint64_t> pushed_id(const Action& push, const Action& set) {
  constexpr std::string_view kSet = "set_field:";
  constexpr std::string_view kField = "->vlan_vid";
  const bool ours = push.kind == ActionKind::kOther && push.text == "push_vlan:0x8100" &&
                    set.kind == ActionKind::kOther && set.text.starts_with(kSet) &&
                    set.text.ends_with(kField);
  if (!ours) return std::nullopt;
  return number_of(set.text, kSet) & 0xfff;
}

std::vector<Action> typed(const std::vector<Action>& read, const PortNumbers& ports) {
  std::vector<Action> actions;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const Action& action = read[i];
    Action meant = action;
    if (action.kind == ActionKind::kForward) {
      const auto named = std::find_if(ports.begin(), ports.end(), [&](const auto& port) {
        return std::to_string(port.second) == action.text;
      });
      if (named != ports.end()) meant = Action::forward(named->first);
    } else if (action.kind == ActionKind::kOther) {
      if (const auto id = i + 1 < read.size() ? pushed_id(action, read[i + 1]) : std::nullopt) {
        meant = {.kind = ActionKind::kPushVlan, .number = *id};
        ++i;
      } else if (auto set = set_field(action.text)) {
        meant = *set;
      } else if (action.text == "note:63.6f.75.6e.74.00") {
        meant = {.kind = ActionKind::kCount};
      } else if (action.text.starts_with("meter:")) {
        meant = {.kind = ActionKind::kMeter, .number = number_of(action.text, "meter:")};
      }
    }
    actions.push_back(std::move(meant));
  }
  return actions;
}

}  // namespace

std::string flow_lines(std::string_view dump) {
  std::string text;
  for (const std::string& line : sorted_lines(dump)) text += line + "\n";
  return text;
}

Result<std::vector<RuleCount>> read_flows(std::string_view dump, const PortNumbers& ports) {
  const auto lines = sorted_lines(dump);
  if (lines.empty()) return std::vector<RuleCount>();
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  auto set = rules::parse_rules(text, "ovs-ofctl dump-flows", rules::Format::kOpenflow);
  if (!set) return pass_on(set);
  std::vector<RuleCount> counted;
  for (FlowRule& rule : set->rules) {
    const std::string& line = lines[rule.from.front()];
    rule.actions = typed(rule.actions, ports);
    rule.from.clear();
    rule.weight = 0.0;
    counted.push_back(
        {std::move(rule), number_of(line, "n_packets="), number_of(line, "n_bytes=")});
  }
  return counted;
}

}  // namespace greynic::flows
