#include "rule_options.h"

#include <fmt/core.h>

#include <charconv>

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

void add_growth(Command& command, std::optional<double>& growth) {
  const auto read = [&growth](const std::string& text) -> Result<void> {
    growth.reset();
    if (text == "auto") return {};
    double number = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("--growth {}: is neither a number nor auto", text));
    }
    growth = number;
    return {};
  };
  command.option("--growth", read,
                 fmt::format("The layout may have this many times the rules of the input, jumps "
                             "included ({} unless told); auto draws the curve of matchers tried "
                             "against rules and takes the knee",
                             *growth));
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
