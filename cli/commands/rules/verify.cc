#include "greynic/verify/verify.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/files/core_json.h"
#include "progress.h"
#include "rule_options.h"

namespace greynic::cli {
namespace {

struct VerifyFlags {
  loop::RuleInput rules;
  std::string layout;
  bool as_json = false;
};

void print_json(const verify::Verdict& verdict) {
  nlohmann::json document = {
      {"equivalent", verdict.equivalent}, {"tables", verdict.tables}, {"regions", verdict.regions}};
  if (verdict.counterexample) {
    nlohmann::json packet = nlohmann::json::object();
    for (const auto& [field, value] : verdict.counterexample->packet.values()) {
      packet[std::string(info(field).name)] = field_value_to_string(field, value);
    }
    document["counterexample"] = {{"table", verdict.counterexample->table},
                                  {"packet", packet},
                                  {"by_rules", verdict.counterexample->by_rules},
                                  {"by_layout", verdict.counterexample->by_layout}};
  }
  put_json(document);
}

int run(const VerifyFlags& flags) {
  const auto rules = loop::load_rules(flags.rules, terminal_talk());
  if (!rules) return tell(rules.error());
  const auto layout = files::read_layout(flags.layout);
  if (!layout) return tell(layout.error());
  Progress progress("comparing", 1.0);
  verify::VerifyOptions options;
  options.progress = [&progress](double share) { progress.update(share); };
  const auto verdict = verify::verify(*rules, *layout, options);
  progress.clear();
  if (!verdict) return tell(verdict.error());
  if (flags.as_json) {
    print_json(*verdict);
  } else if (verdict->equivalent) {
    print("equivalent: every packet gets the same actions ({} tables, {} regions)\n",
          verdict->tables, verdict->regions);
  } else {
    const auto& found = *verdict->counterexample;
    print(
        "not equivalent\n  packet     {}\n  enters at  table {}\n  by rules   {}\n"
        "  by layout  {}\n",
        to_string(found.packet), found.table, found.by_rules, found.by_layout);
  }
  return verdict->equivalent ? 0 : 1;
}

}  // namespace

void add_verify(Program& program) {
  auto flags = std::make_shared<VerifyFlags>();
  Command command = program.command(
      "verify", "Does a layout do to every packet what the rules do?",
      "  greynic verify filters.rules layout.json         # exit 1 and a packet if not\n"
      "  greynic verify flows.txt.xz layout.json --json");
  (void)add_rule_input(command, flags->rules).required();
  command.option("LAYOUT", flags->layout, "Layout file (docs/formats/layout.md)").required();
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
