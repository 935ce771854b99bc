#include "rule_options.h"

namespace greynic::cli {

Option add_rule_input(Command& command, loop::RuleInput& input) {
  const Option rules =
      command.option("RULES", input.path,
                     "Rule file, or one that comes with greynic; .xz and .gz are unpacked. "
                     "made:FAMILY:COUNT:SEED makes filters (`greynic generate`)");
  command.option("--format", input.format,
                 "classbench, openflow, fields, megaflow, tc or layout; else told from the "
                 "text (docs/formats/rules.md)");
  return rules;
}

void add_hop(Command& command, Hop& hop) {
  const auto read = [&hop](const std::string& name) -> Result<void> {
    const auto named = hop_named(name);
    if (!named) return pass_on(named);
    hop = *named;
    return {};
  };
  command.option(
      "--hop", read,
      "Which mask sequence: client_encap, server_decap (standard), server_encap, client_decap");
}

}  // namespace greynic::cli
