#include "greynic/flows/rule_commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "common/named_headers.h"
#include "greynic/core/text.h"
#include "greynic/flows/flow_driver.h"
#include "ovs/ovs_text.h"
#include "tc/tc_flower.h"
#include "tc/tc_place.h"
#include "words/words.h"

namespace greynic::flows {
namespace {

using Program = CommandForm::Program;

struct ProgramInfo {
  Program program;
  std::string_view name;
  std::string_view usual_device;  ///< empty: it must be named
  std::uint32_t last_table;
};
constexpr std::array kPrograms = {
    ProgramInfo{Program::kOvs, "ovs", "BRIDGE", kOvsLastTable},
    ProgramInfo{Program::kTc, "tc", "", kLastChain},
    ProgramInfo{Program::kRteFlow, "rte_flow", "0", std::numeric_limits<std::uint32_t>::max()}};

/// What a program that reads lines and words would take for the end of a word.
bool ends_a_word(char c) {
  return c <= ' ' || c == 0x7f || c == '"' || c == '\'' || c == '\\' || c == ';' || c == '#';
}

/// Names and foreign words come from files of others: none may become a command of its own.
Result<void> check_words(const RuleSet& rules) {
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    for (const Action& action : rules.rules[i].actions) {
      const bool port = action.kind == ActionKind::kForward;
      const bool harmful = std::any_of(action.text.begin(), action.text.end(), [&](char c) {
        return port ? ends_a_word(c) : c >= 0 && c < ' ';
      });
      if (!harmful && !(port && action.text.empty())) continue;
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: {} is no word that could stand in a command",
                              flows::place_of(rules, i), printable(to_string(action))));
    }
  }
  return {};
}

/// ovs-ofctl asks the bridge for the numbers of ports that are named.
RuleSet with_quoted_ports(RuleSet rules) {
  for (FlowRule& rule : rules.rules) {
    for (Action& action : rule.actions) {
      const bool number = action.text.find_first_not_of("0123456789") == std::string::npos;
      if (action.kind == ActionKind::kForward && !number) {
        action = Action::other(fmt::format("output:\"{}\"", action.text));
      }
    }
  }
  return rules;
}

/// Tables of the slow path, and where entries may leave the device.
struct SlowPath {
  std::set<std::uint32_t> tables;
  std::map<std::pair<std::uint32_t, RulePriority>, std::uint32_t> idle_seconds;
};

SlowPath slow_path_of(const Layout& layout) {
  SlowPath found;
  for (const LayoutTable& table : layout.tables) {
    if (table.software) found.tables.insert(table.id);
    for (std::size_t i = 0; i < table.matchers.size(); ++i) {  // numbered as rules_of() does
      if (table.matchers[i].idle_seconds == 0) continue;
      found.idle_seconds[{table.id, static_cast<RulePriority>(i)}] = table.matchers[i].idle_seconds;
    }
  }
  return found;
}

/// Seconds after which the rule may leave; 0: never.
std::uint32_t idle_of(const SlowPath& slow, const FlowRule& rule) {
  const auto found = slow.idle_seconds.find({rule.table, rule.priority});
  return found == slow.idle_seconds.end() ? 0 : found->second;
}

/// Open vSwitch holds the slow path's tables as it holds others.
Result<std::string> ovs_commands(const RuleSet& rules, const SlowPath& slow,
                                 const std::string& bridge) {
  std::string text =
      fmt::format("# ovs-ofctl -O OpenFlow13 --bundle replace-flows {} THIS_FILE\n", bridge);
  const auto lines = ovs_rules_text(with_quoted_ports(rules), {});
  if (!lines) return lines;
  if (slow.idle_seconds.empty()) return text + *lines;
  std::size_t begin = 0;
  for (const FlowRule& rule : rules.rules) {  // a line each
    const std::size_t end = lines->find('\n', begin) + 1;
    const std::uint32_t seconds = idle_of(slow, rule);
    if (seconds > 0) text += fmt::format("idle_timeout={},", seconds);
    text += lines->substr(begin, end - begin);
    begin = end;
  }
  return text;
}

/// The kernel keeps one protocol for each preference of a chain, so a priority whose rules have
/// several gets one preference for each. They exclude each other, and their order does not matter.
std::vector<unsigned> preferences(const RuleSet& rules) {
  std::vector<unsigned> given;
  std::map<std::pair<std::uint32_t, RulePriority>, std::vector<std::uint16_t>> protocols;
  for (const FlowRule& rule : rules.rules) {
    auto& known = protocols[{rule.table, rule.priority}];
    const std::uint16_t protocol = tc_protocol(rule.match);
    if (std::find(known.begin(), known.end(), protocol) == known.end()) known.push_back(protocol);
  }
  std::map<std::pair<std::uint32_t, RulePriority>, unsigned> first;
  std::map<std::uint32_t, unsigned> used;
  for (const auto& [place, list] : protocols) {
    first[place] = used[place.first] + 1;
    used[place.first] += static_cast<unsigned>(list.size());
  }
  for (const FlowRule& rule : rules.rules) {
    const auto& list = protocols[{rule.table, rule.priority}];
    const auto at = std::find(list.begin(), list.end(), tc_protocol(rule.match)) - list.begin();
    given.push_back(first[{rule.table, rule.priority}] + static_cast<unsigned>(at));
  }
  return given;
}

/// In hardware alone, or in software alone; what the hardware jumps to and does not have goes on in
/// software at the same chain.
std::string in_its_place(std::string words, const SlowPath& slow, const FlowRule& rule) {
  if (slow.tables.empty()) return words;
  constexpr std::string_view kFlower = " flower";
  const std::size_t at = words.find(kFlower);
  words.insert(at + kFlower.size(), slow.tables.contains(rule.table) ? " skip_hw" : " skip_sw");
  return words;
}

Result<std::string> tc_commands(const RuleSet& rules, const SlowPath& slow,
                                const std::string& interface) {
  constexpr unsigned kLastPreference = 65535;
  std::string text = fmt::format("# tc qdisc add dev {} clsact; tc -batch THIS_FILE\n", interface);
  const std::vector<unsigned> preference = preferences(rules);
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const FlowRule& rule = rules.rules[i];
    if (preference[i] > kLastPreference) {
      return fail(ErrorCode::kUnsupported, fmt::format("{}: preferences of tc end at {}",
                                                       flows::place_of(rules, i), kLastPreference));
    }
    auto words = tc_words(rule, preference[i]);
    if (!words) return words.error().while_doing(flows::place_of(rules, i));
    text += fmt::format("filter add dev {} ingress chain {} {}\n", interface, rule.table,
                        in_its_place(std::move(*words), slow, rule));
  }
  return text;
}

/// To the slow path: a queue, from which a program takes the packets.
FlowRule to_slow_queue(FlowRule rule, const SlowPath& slow) {
  for (Action& action : rule.actions) {
    const bool leaves = action.kind == ActionKind::kJump &&
                        slow.tables.contains(static_cast<std::uint32_t>(action.number));
    if (leaves) action = Action::forward("queue:0");
  }
  return rule;
}

Result<std::string> testpmd_commands(const RuleSet& rules, const SlowPath& slow,
                                     const std::string& port) {
  std::string text = "# testpmd> load THIS_FILE\n";
  if (!slow.tables.empty()) {
    text += fmt::format(
        "# Queue 0 gets what the hardware does not decide: a program must decide it by the rules "
        "of "
        "the layout's table {}.\n",
        *slow.tables.begin());
  }
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (slow.tables.contains(rules.rules[i].table)) continue;
    const FlowRule rule = to_slow_queue(rules.rules[i], slow);
    auto words = testpmd_words(rule);
    if (!words) return words.error().while_doing(flows::place_of(rules, i));
    if (const std::uint32_t seconds = idle_of(slow, rule); seconds > 0) {
      constexpr std::string_view kActions = " actions ";
      words->insert(words->rfind(kActions) + kActions.size(),
                    fmt::format("age timeout {} / ", seconds));
    }
    text += fmt::format("flow create {} group {} priority {} ingress {}\n", port, rule.table,
                        rule.priority, *words);
  }
  return text;
}

}  // namespace

Result<CommandForm> command_form(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view device =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const bool plain = std::none_of(device.begin(), device.end(), ends_a_word);
  for (const ProgramInfo& row : kPrograms) {
    const std::string_view named = device.empty() ? row.usual_device : device;
    const bool number = named.find_first_not_of("0123456789") == std::string_view::npos;
    if (row.name != name || named.empty() || !plain) continue;
    if (row.program == Program::kRteFlow && !number) continue;
    return CommandForm{row.program, std::string(named)};
  }
  return fail(ErrorCode::kBadInput,
              fmt::format("no commands are known for '{}': there are ovs, ovs:BRIDGE, "
                          "tc:INTERFACE, rte_flow and rte_flow:PORT (a number)",
                          text));
}

LayoutLimits limits_of(Program program) {
  LayoutLimits limits;
  for (const ProgramInfo& row : kPrograms) {
    if (row.program == program) limits.last_table = row.last_table;
  }
  if (program == Program::kOvs) limits.whole_fields = ovs_whole_fields();
  if (program == Program::kTc) limits.whole_fields = tc_whole_fields();
  return limits;
}

Result<std::string> rule_commands(const Layout& layout, const CommandForm& form) {
  const bool prefixes_only = form.program == Program::kTc;
  const bool ranges = form.program == Program::kRteFlow;
  const Layout plain = ranges ? layout : without_ranges(layout);
  const Layout written = with_headers(prefixes_only ? with_prefixes(plain) : plain);
  const RuleSet rules = rules_of(written);
  if (const auto checked = check_words(rules); !checked) return pass_on(checked);
  const SlowPath slow = slow_path_of(written);
  switch (form.program) {
    case Program::kOvs:
      return ovs_commands(rules, slow, form.device);
    case Program::kTc:
      return tc_commands(rules, slow, form.device);
    case Program::kRteFlow:
      return testpmd_commands(rules, slow, form.device);
  }
  return fail(ErrorCode::kInternal, "a program without commands");
}

}  // namespace greynic::flows
