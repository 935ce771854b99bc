#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "greynic/files/json_file.h"
#include "greynic/model/model.h"
#include "greynic/results/store.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string run;
  std::string out;
  std::string form = "auto";
  model::FitOptions options;
  bool json = false;
};

void print_report(const model::FitReport& report, bool as_json) {
  if (as_json) {
    const nlohmann::json document = {{"law", report.model->law()},
                                     {"observations", report.observations_used},
                                     {"r2", report.r2},
                                     {"cross_validated_error", report.cross_validated_error},
                                     {"findings", report.findings}};
    fmt::print("{}\n", document.dump(1));
    return;
  }
  fmt::print("{}", report.text);
  if (!report.findings.empty()) fmt::print("\nfindings\n");
  for (const std::string& finding : report.findings) fmt::print("  {}\n", finding);
}

int run_fit(Flags flags) {
  const auto form = model::form_named(flags.form);
  if (!form) {
    return tell({ErrorCode::kBadInput, fmt::format("--form must be {}", model::kFormNames)});
  }
  flags.options.form = *form;
  auto run = results::RunStore::open_to_read(flags.run);
  if (!run) return tell(run.error());
  const auto observations = run->observations();
  if (!observations) return tell(observations.error());
  const auto report = model::fit(*observations, flags.options);
  if (!report) return tell({report.error().code, flags.run + ": " + report.error().message});
  if (!flags.out.empty()) {
    if (auto ok = files::write_text(flags.out, report->model->to_json_text()); !ok) {
      return tell(ok.error());
    }
    say("model written to " + flags.out);
  }
  print_report(*report, flags.json);
  return 0;
}

}  // namespace

void add_fit(CLI::App& root, Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(root, "fit", "Fit a law to a run, with intervals and findings",
                                  "  greynic fit run.db -o model.json\n"
                                  "  greynic fit run.db -o model.json --form scalacn\n"
                                  "  greynic fit run.db --json");
  command->add_option("run", flags->run, "Run to fit (SQLite)")->required();
  command->add_option("-o,--out", flags->out, "Write the model here");
  command->add_option("--form", flags->form, std::string(model::kFormNames))->capture_default_str();
  command->add_option("--seed", flags->options.seed, "Seed of the starts")->capture_default_str();
  command->add_option("--starts", flags->options.starts, "Starting points of the search")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", flags->json, "JSON on stdout");
  command->callback([flags, &program] { program.exit_code = run_fit(*flags); });
}

}  // namespace greynic::cli
