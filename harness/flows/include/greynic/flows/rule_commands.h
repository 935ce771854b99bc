#pragma once

/// A layout as commands for the programs that people install rules with, to read, keep and review.
///
/// `greynic apply` speaks to devices directly, with a transaction and a way back; these commands are
/// for places where it may not run. They carry the same rules: headers named, tables and priorities
/// as apply would give them. Lines that begin with # say how to run them.

#include <cstdint>
#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/layout_limits.h"
#include "greynic/core/result.h"

namespace greynic::flows {

/// Whose commands, and which device they name.
struct CommandForm {
  enum class Program : std::uint8_t {
    kOvs,      ///< lines for `ovs-ofctl add-flows BRIDGE FILE`
    kTc,       ///< lines for `tc -batch FILE`; the device is an interface
    kRteFlow,  ///< lines for testpmd; the device is a port number
  };
  Program program = Program::kOvs;
  std::string device;
};

/// Reads "ovs", "ovs:BRIDGE", "tc:INTERFACE", "rte_flow" or "rte_flow:PORT". kBadInput lists these.
[[nodiscard]] Result<CommandForm> command_form(std::string_view text);

/// What layouts may look like whose rules the program has words for.
[[nodiscard]] LayoutLimits limits_of(CommandForm::Program program);

/// kUnsupported names the rule and what the program has no word for.
[[nodiscard]] Result<std::string> rule_commands(const Layout& layout, const CommandForm& form);

}  // namespace greynic::flows
