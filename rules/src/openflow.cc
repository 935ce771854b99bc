/// OpenFlow rules: what ovs-ofctl dump-flows prints (with actions, tables, larger-wins priorities),
/// and ClassBench-ng's bare lists of fields (first line wins).

#include <fmt/core.h>

#include <map>

#include "field_value.h"
#include "line_text.h"
#include "ovs_fields.h"
#include "readers.h"

namespace greynic::rules {
namespace {

constexpr std::uint64_t kStandardPriority = 32768;  // what a flow without priority= has
constexpr std::uint64_t kHighestPriority = 65535;

/// Parts of a dumped flow that are neither match nor action.
bool is_bookkeeping(std::string_view key) {
  for (const std::string_view name : {"cookie", "duration", "n_bytes", "idle_timeout",
                                      "hard_timeout", "idle_age", "hard_age", "importance"}) {
    if (key == name) return true;
  }
  return false;
}

/// Flags of a flow stand as words in front of the next part: "send_flow_rem idle_age=3".
std::string_view without_flags(std::string_view part) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view flag :
         {"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"}) {
      if (!part.starts_with(flag)) continue;
      part = trimmed(part.substr(flag.size()));
      again = true;
    }
  }
  return part;
}

/// The table of "resubmit(,8)" or "goto_table:8".
std::optional<std::uint64_t> jump_target(std::string_view action) {
  std::optional<std::uint64_t> table;
  if (action.starts_with("resubmit(,") && action.ends_with(')')) {
    table = number_from(action.substr(10, action.size() - 11));
  } else if (action.starts_with("goto_table:")) {
    table = number_from(action.substr(11));
  }
  return table && *table <= 254 ? table : std::nullopt;
}

/// Adds "set_field:0x5/0xff->reg0" where it writes metadata or registers, which every packet has; false for anything
/// else. What lies over several registers is written one by one: xreg0 is reg0 and reg1, xxreg0 reg0 to
/// reg3, the first of them the highest.
bool add_register(std::string_view text, std::vector<Action>& actions) {
  constexpr std::string_view kSet = "set_field:";
  constexpr unsigned kWidth = 32;
  const std::size_t arrow = text.find("->");
  if (!text.starts_with(kSet) || arrow == std::string_view::npos) return false;
  const std::string_view name = text.substr(arrow + 2);
  const std::string_view masked = text.substr(kSet.size(), arrow - kSet.size());
  unsigned registers = 1;
  std::string_view number = name;
  if (name.starts_with("xxreg")) registers = 4;
  if (name.starts_with("xreg")) registers = 2;
  number.remove_prefix(std::min(number.size(), name.find("reg") + 3));
  const auto first = name == "metadata" ? std::optional<std::uint64_t>(0) : number_from(number);
  const auto field = name == "metadata" ? MatchField::kMetadata : MatchField::kReg0;
  const bool is_register = name.starts_with("reg") || registers > 1;
  if (!first || (field == MatchField::kReg0 && !is_register) || *first * registers > 15)
    return false;
  const MatchField wide = registers == 4   ? MatchField::kCtLabel
                          : registers == 2 ? MatchField::kMetadata
                                           : field;  // of as many bits
  const auto part = masked_from(wide, masked);
  if (!part || part->bits == 0 || (part->value & ~part->bits) != 0) return false;
  if (field == MatchField::kMetadata) {
    actions.push_back(
        {.kind = ActionKind::kSetField, .field = field, .value = part->value, .bits = part->bits});
    return true;
  }
  for (unsigned i = 0; i < registers; ++i) {
    const unsigned shift = kWidth * (registers - 1 - i);
    const auto place = static_cast<unsigned>(field) + static_cast<unsigned>(*first) * registers + i;
    Action set{.kind = ActionKind::kSetField, .field = static_cast<MatchField>(place)};
    set.value = part->value >> shift & full_mask(set.field);
    set.bits = part->bits >> shift & full_mask(set.field);
    if (set.bits != 0) actions.push_back(std::move(set));
  }
  return true;
}

/// A jump is understood as the last action only: what follows a resubmit() runs after it returns.
Action action_from(std::string_view text, bool last) {
  if (text == "drop") return Action::drop();
  if (text == "strip_vlan" || text == "pop_vlan") return {.kind = ActionKind::kPopVlan};
  if (text.starts_with("output:")) {
    const std::string_view port = text.substr(7);
    if (!port.empty() && port.find_first_of("[(") == std::string_view::npos) {
      return Action::forward(std::string(port));
    }
  }
  if (number_from(text)) return Action::forward(std::string(text));
  if (const auto table = jump_target(text); table && last) return Action::jump(*table);
  return Action::other(std::string(text));
}

Result<std::vector<Action>> actions_from(std::string_view text, const std::string& source,
                                         std::size_t line) {
  const auto parts = split_outside_brackets(text, ',');
  if (!parts) return bad_line(source, line, "the brackets of the actions do not match");
  std::vector<Action> actions;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const std::string_view part = trimmed((*parts)[i]);
    if (part.empty()) return bad_line(source, line, "an action is empty");
    if (add_register(part, actions)) continue;
    actions.push_back(action_from(part, i + 1 == parts->size()));
  }
  return actions;
}

struct Dumped {
  FlowRule rule;
  std::uint64_t packets = 0;
};

Result<Dumped> dumped_flow(std::string_view line, const std::string& source, std::size_t index) {
  const std::size_t mark = line.find("actions=");
  if (mark == std::string_view::npos) return bad_line(source, index, "has no actions=");
  const auto parts = split_outside_brackets(trimmed(line.substr(0, mark)), ',');
  if (!parts) return bad_line(source, index, "the brackets of the match do not match");
  Dumped flow;
  std::uint64_t priority = kStandardPriority;
  for (std::string_view part : *parts) {
    part = without_flags(trimmed(part));
    if (part.empty()) continue;  // "priority=0 actions=" leaves one behind its last comma
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (is_bookkeeping(key)) continue;
    const bool counted = key == "n_packets" || key == "table" || key == "priority";
    if (!counted) {
      if (const auto complaint = add_ovs_match(part, flow.rule.match)) {
        return bad_line(source, index, *complaint);
      }
      continue;
    }
    const auto number =
        equals == std::string_view::npos ? std::nullopt : number_from(part.substr(equals + 1));
    const std::uint64_t most = key == "table" ? 254 : kHighestPriority;
    if (!number || (key != "n_packets" && *number > most)) {
      return bad_line(source, index, fmt::format("'{}' is not in 0..{}", shown(part), most));
    }
    if (key == "n_packets") flow.packets = *number;
    if (key == "table") flow.rule.table = static_cast<std::uint32_t>(*number);
    if (key == "priority") priority = *number;
  }
  flow.rule.priority = static_cast<RulePriority>(kHighestPriority - priority);
  auto actions = actions_from(trimmed(line.substr(mark + 8)), source, index);
  if (!actions) return pass_on(actions);
  flow.rule.actions = std::move(*actions);
  flow.rule.from = {static_cast<std::uint32_t>(index)};
  return flow;
}

}  // namespace

Result<RuleSet> parse_openflow(std::string_view text, const std::string& source) {
  RuleSet set{{}, source};
  std::vector<std::uint64_t> packets;
  std::map<std::uint32_t, double> packets_of_table;
  const auto lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = trimmed(lines[index]);
    const bool header = line.starts_with("NXST_FLOW") || line.starts_with("OFPST_FLOW");
    if (line.empty() || line.front() == '#' || header) continue;
    auto flow = dumped_flow(line, source, index);
    if (!flow) return pass_on(flow);
    packets.push_back(flow->packets);
    packets_of_table[flow->rule.table] += static_cast<double>(flow->packets);
    set.rules.push_back(std::move(flow->rule));
  }
  if (set.rules.empty()) return fail(ErrorCode::kBadInput, source + ": holds no OpenFlow rule");
  for (std::size_t i = 0; i < set.rules.size(); ++i) {
    const double all = packets_of_table[set.rules[i].table];
    if (all > 0) set.rules[i].weight = static_cast<double>(packets[i]) / all;
  }
  return set;
}

Result<RuleSet> parse_fields(std::string_view text, const std::string& source) {
  RuleSet set{{}, source};
  const auto lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = trimmed(lines[index]);
    if (line.empty() || line.front() == '#') continue;
    FlowRule rule;
    const auto parts = split_outside_brackets(line, ',');
    if (!parts) return bad_line(source, index, "its brackets do not match");
    for (const std::string_view part : *parts) {
      if (const auto complaint = add_ovs_match(trimmed(part), rule.match)) {
        return bad_line(source, index, *complaint);
      }
    }
    const auto number = static_cast<std::uint32_t>(index);
    rule.priority = number;
    rule.from = {number};
    rule.actions = {mark_line(number)};
    set.rules.push_back(std::move(rule));
  }
  if (set.rules.empty()) return fail(ErrorCode::kBadInput, source + ": holds no rule");
  return set;
}

}  // namespace greynic::rules
