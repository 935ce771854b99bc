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

nlohmann::json to_json(const verify::Verdict& verdict) {
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
  return document;
}

void print_verdict(const verify::Verdict& verdict, const std::string& models) {
  if (verdict.equivalent) {
    print("equivalent{}: every packet gets the same actions ({} tables, {} regions)\n", models,
          verdict.tables, verdict.regions);
    return;
  }
  const auto& found = *verdict.counterexample;
  print(
      "not equivalent{}\n  packet     {}\n  enters at  table {}\n  by rules   {}\n"
      "  by layout  {}\n",
      models, to_string(found.packet), found.table, found.by_rules, found.by_layout);
}

int run(const VerifyFlags& flags) {
  const auto rules = loop::load_rules(flags.rules, terminal_talk());
  if (!rules) return tell(rules.error());
  const auto layouts = files::read_model_layouts(flags.layout);
  if (!layouts) return tell(layouts.error());
  bool equivalent = true;
  nlohmann::json by_model = nlohmann::json::array();
  for (const ModelLayout& part : *layouts) {
    Progress progress("comparing", 1.0);
    verify::VerifyOptions options;
    options.progress = [&progress](double share) { progress.update(share); };
    const auto verdict = verify::verify(*rules, part.layout, options);
    progress.clear();
    if (!verdict) return tell(verdict.error());
    equivalent = equivalent && verdict->equivalent;
    if (!flags.as_json) {
      print_verdict(*verdict, part.models.empty()
                                  ? ""
                                  : fmt::format(" for {}", fmt::join(part.models, ", ")));
      continue;
    }
    by_model.push_back(to_json(*verdict));
    if (!part.models.empty()) by_model.back()["names"] = part.models;
  }
  if (flags.as_json) {
    const bool one = layouts->front().models.empty();
    put_json(one ? by_model.front()
                 : nlohmann::json{{"equivalent", equivalent}, {"models", by_model}});
  }
  return equivalent ? 0 : 1;
}

}  // namespace

void add_verify(Program& program) {
  auto flags = std::make_shared<VerifyFlags>();
  Command command = program.command(
      "verify", "Does a layout do to every packet what the rules do?",
      "  greynic verify filters.rules layout.json         # exit 1 and a packet if not\n"
      "  greynic verify flows.txt.xz layout.json --json");
  (void)add_rule_input(command, flags->rules).required();
  command
      .option(
          "LAYOUT", flags->layout,
          "Layout file, or one with a layout for each model of a fleet (docs/formats/layout.md)")
      .required();
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
