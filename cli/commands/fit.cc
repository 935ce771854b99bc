#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/loop/fit_runs.h"
#include "progress.h"

namespace greynic::cli {
namespace {

struct FitFlags {
  std::vector<std::string> runs;
  std::vector<std::string> compare;
  std::string out;
  std::string form = "auto";
  std::string intervals = "profile";
  model::FitOptions options;
  bool json = false;
};

nlohmann::json to_json(const model::FitReport& report) {
  return {{"law", report.model->law()},
          {"observations", report.observations_used},
          {"r2", report.r2},
          {"cross_validated_error", report.cross_validated_error},
          {"findings", report.findings}};
}

void print_report(const model::FitReport& report) {
  put(report.text);
  if (!report.findings.empty()) print("\nfindings\n");
  for (const std::string& finding : report.findings) print("  {}\n", finding);
}

int fit(const FitFlags& flags) {
  const auto reports = loop::fit_runs(flags.runs, flags.options, flags.out, terminal_talk());
  if (!reports) return tell(reports.error());
  if (flags.json) {
    nlohmann::json all = nlohmann::json::object();
    for (std::size_t r = 0; r < reports->size(); ++r) all[flags.runs[r]] = to_json((*reports)[r]);
    put_json(reports->size() == 1 ? *all.begin() : all);
    return 0;
  }
  for (std::size_t r = 0; r < reports->size(); ++r) {
    if (reports->size() > 1) print("{}== {}\n", r == 0 ? "" : "\n", flags.runs[r]);
    print_report((*reports)[r]);
  }
  return 0;
}

nlohmann::json to_json(const model::ModelComparison& comparison) {
  nlohmann::json measures = nlohmann::json::object();
  for (const auto& [name, d] : comparison.measures) {
    measures[name] = {{"mean_ratio", d.mean_ratio},
                      {"mean_difference", d.mean_difference},
                      {"worst_ratio", d.worst_ratio},
                      {"worst_at", d.worst_at}};
    if (!d.on_run) continue;
    measures[name]["on_run"] = {{"error_a", d.on_run->error_a},
                                {"error_b", d.on_run->error_b},
                                {"inside_a", d.on_run->inside_a},
                                {"inside_b", d.on_run->inside_b},
                                {"observations", d.on_run->observations}};
  }
  nlohmann::json parameters = nlohmann::json::array();
  for (const auto& p : comparison.parameters) {
    parameters.push_back(
        {{"name", p.name}, {"unit", p.unit}, {"a", p.a}, {"b", p.b}, {"apart", p.apart}});
  }
  return {{"law_a", comparison.law_a},       {"law_b", comparison.law_b},
          {"settings", comparison.settings}, {"measures", measures},
          {"parameters", parameters},        {"notes", comparison.notes}};
}

int compare(const FitFlags& flags) {
  const auto comparison =
      loop::compare_model_files(flags.compare[0], flags.compare[1], flags.runs, flags.options.seed);
  if (!comparison) return tell(comparison.error());
  if (flags.json) {
    put_json(to_json(*comparison));
  } else {
    put(to_text(*comparison));
  }
  return 0;
}

int run_fit(FitFlags flags) {
  const auto form = model::form_named(flags.form);
  if (!form) {
    return tell({ErrorCode::kBadInput, fmt::format("--form must be {}", model::kFormNames)});
  }
  const auto intervals = model::intervals_named(flags.intervals);
  if (!intervals) {
    return tell({ErrorCode::kBadInput, "--intervals must be covariance, profile or bootstrap"});
  }
  flags.options.form = *form;
  flags.options.intervals = *intervals;
  if (!flags.compare.empty()) return compare(flags);
  if (flags.runs.empty()) return tell({ErrorCode::kBadInput, "fit needs a run, or --compare A B"});
  return fit(flags);
}

}  // namespace

void add_fit(Program& program) {
  auto flags = std::make_shared<FitFlags>();
  Command command = program.command(
      "fit", "Fit a law to a run, with intervals and findings",
      "  greynic fit run.db -o model.json\n  greynic fit run.db -o model.json --form scalacn\n  "
      "greynic fit run.db --json --intervals bootstrap\n  greynic fit cx5.db cx6.db cx7.db -o "
      "models   # together, one model each\n  greynic fit --compare old.json new.json\n  greynic "
      "fit run.db --compare old.json new.json   # who predicts the run better");
  command.option("run", flags->runs,
                 "Run to fit (SQLite), which keeps the model; several are fitted together");
  command.option("-o,--out", flags->out, "Write the model here; a folder for several runs")
      .writes();
  command.option("--compare", flags->compare, "Compare two model files instead of fitting")
      .words(2);
  command.option("--form", flags->form, "Law to fit: " + std::string(model::kFormNames));
  command.option("--intervals", flags->intervals,
                 "How the intervals of the pipeline law's parameters are found: covariance, "
                 "profile (where covariance does not hold) or bootstrap");
  command.option("--samples", flags->options.bootstrap_samples, "How many fits the bootstrap makes")
      .range(100, 100000);
  command.option("--seed", flags->options.seed, "Seed of the starting points");
  command.option("--starts", flags->options.starts, "Starting points of the search").range(1, 1000);
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return run_fit(*flags); });
}

}  // namespace greynic::cli
