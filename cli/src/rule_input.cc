#include "rule_input.h"

#include <fmt/core.h>

#include "greynic/rules/read_rules.h"

namespace greynic::cli {

void add_rule_input(Command& command, RuleInput& input) {
  command.option("RULES", input.path, "Rule set; .xz and .gz are unpacked").required();
  command.option("--format", input.format,
                 "classbench, openflow, fields, megaflow, tc or layout; else told from the "
                 "text (docs/formats/rules.md)");
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

Result<RuleSet> load_rules(const RuleInput& input) {
  std::optional<rules::Format> format;
  if (!input.format.empty()) {
    format = rules::format_named(input.format);
    if (!format) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("--format {}: there are classbench, openflow, fields, megaflow, tc "
                              "and layout",
                              input.format));
    }
  }
  auto read = rules::read_rules(input.path, format);
  if (!read || !rules::has_conjunctions(*read)) return read;
  const std::size_t before = read->rules.size();
  auto resolved = rules::resolve_conjunctions(std::move(*read));
  if (resolved) {
    say(fmt::format("{}: {} rules, {} with their conjunctions as plain rules", input.path, before,
                    resolved->rules.size()));
  }
  return resolved;
}

}  // namespace greynic::cli
