#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"
#include "greynic/files/json_file.h"
#include "greynic/model/comparison.h"
#include "greynic/model/model.h"
#include "greynic/results/store.h"

namespace greynic::cli {
namespace {

struct Flags {
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
  fmt::print("{}", report.text);
  if (!report.findings.empty()) fmt::print("\nfindings\n");
  for (const std::string& finding : report.findings) fmt::print("  {}\n", finding);
}

/// The model goes into the run, where `greynic report` finds it, and to `path` when one is given.
Result<void> keep(const model::FitReport& report, const std::string& run_path,
                  const std::string& path) {
  const std::string text = report.model->to_json_text();
  if (!path.empty()) {
    if (auto written = files::write_text(path, text); !written) return written;
    say("model written to " + path);
  }
  auto run = results::RunStore::open_to_read(run_path);
  if (!run) return pass_on(run);
  if (auto kept = run->keep("model", text); !kept) {
    say("the model is not kept with the run: " + kept.error().message);
  }
  return {};
}

Result<std::vector<Observation>> observations_of(const std::string& path) {
  auto run = results::RunStore::open_to_read(path);
  if (!run) return pass_on(run);
  return run->observations();
}

int fit_one(const Flags& flags) {
  const std::string& path = flags.runs.front();
  const auto observations = observations_of(path);
  if (!observations) return tell(observations.error());
  const auto report = model::fit(*observations, flags.options);
  if (!report) return tell({report.error().code, path + ": " + report.error().message});
  if (auto kept = keep(*report, path, flags.out); !kept) return tell(kept.error());
  if (flags.json) {
    fmt::print("{}\n", to_json(*report).dump(1));
  } else {
    print_report(*report);
  }
  return 0;
}

int fit_several(const Flags& flags) {
  if (flags.form != "auto" && flags.form != "pipeline") {
    return tell({ErrorCode::kBadInput, "several runs are fitted together by the pipeline law"});
  }
  std::vector<std::vector<Observation>> runs;
  std::set<std::string> names;
  for (const std::string& path : flags.runs) {
    auto observations = observations_of(path);
    if (!observations) return tell(observations.error());
    runs.push_back(std::move(*observations));
    if (!names.insert(std::filesystem::path(path).stem().string()).second) {
      return tell({ErrorCode::kBadInput,
                   path + ": two runs of one name; the models would overwrite each other"});
    }
  }
  const auto reports = model::fit_together(runs, flags.options);
  if (!reports) return tell(reports.error());
  if (!flags.out.empty()) {
    std::error_code error;
    std::filesystem::create_directories(flags.out, error);
    if (error) return tell({ErrorCode::kBadInput, flags.out + ": " + error.message()});
  }
  nlohmann::json all = nlohmann::json::object();
  for (std::size_t r = 0; r < reports->size(); ++r) {
    const std::string& path = flags.runs[r];
    const auto stem = std::filesystem::path(path).stem().string();
    const std::string out = flags.out.empty() ? "" : flags.out + "/" + stem + ".json";
    if (auto kept = keep((*reports)[r], path, out); !kept) return tell(kept.error());
    if (flags.json) {
      all[path] = to_json((*reports)[r]);
      continue;
    }
    fmt::print("{}== {}\n", r == 0 ? "" : "\n", path);
    print_report((*reports)[r]);
  }
  if (flags.json) fmt::print("{}\n", all.dump(1));
  return 0;
}

nlohmann::json to_json(const model::ModelComparison& comparison) {
  nlohmann::json measures = nlohmann::json::object();
  for (const auto& [name, d] : comparison.measures) {
    measures[name] = {{"mean_ratio", d.mean_ratio},
                      {"mean_difference", d.mean_difference},
                      {"worst_ratio", d.worst_ratio},
                      {"worst_at", d.worst_at}};
    if (!d.judged) continue;
    measures[name]["on_run"] = {{"error_a", d.judged->error_a},
                                {"error_b", d.judged->error_b},
                                {"inside_a", d.judged->inside_a},
                                {"inside_b", d.judged->inside_b},
                                {"observations", d.judged->observations}};
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

int compare(const Flags& flags) {
  const auto a = model::load(flags.compare[0]);
  if (!a) return tell(a.error());
  const auto b = model::load(flags.compare[1]);
  if (!b) return tell(b.error());
  std::vector<Observation> observations;
  for (const std::string& path : flags.runs) {
    const auto more = observations_of(path);
    if (!more) return tell(more.error());
    observations.insert(observations.end(), more->begin(), more->end());
  }
  const auto comparison = model::compare_models(**a, **b, observations, flags.options.seed);
  if (!comparison) return tell(comparison.error());
  if (flags.json) {
    fmt::print("{}\n", to_json(*comparison).dump(1));
  } else {
    fmt::print("{}", to_text(*comparison));
  }
  return 0;
}

int run_fit(Flags flags) {
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
  return flags.runs.size() == 1 ? fit_one(flags) : fit_several(flags);
}

}  // namespace

void add_fit(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.command(
      "fit", "Fit a law to a run, with intervals and findings",
      "  greynic fit run.db -o model.json\n"
      "  greynic fit run.db -o model.json --form scalacn\n"
      "  greynic fit run.db --json --intervals bootstrap\n"
      "  greynic fit cx5.db cx6.db cx7.db -o models   # together, one model each\n"
      "  greynic fit --compare old.json new.json\n"
      "  greynic fit run.db --compare old.json new.json   # who predicts the run better");
  command.option("run", flags->runs,
                 "Run to fit (SQLite), which keeps the model; several are fitted together");
  command.option("-o,--out", flags->out, "Write the model here; a folder for several runs");
  command.option("--compare", flags->compare, "Compare two model files instead of fitting")
      .words(2);
  command.option("--form", flags->form, std::string(model::kFormNames));
  command.option("--intervals", flags->intervals,
                 "Of the pipeline law's parameters: covariance, profile (where covariance does "
                 "not hold) or bootstrap");
  command.option("--samples", flags->options.bootstrap_samples, "Fits of the bootstrap")
      .range(100, 100000);
  command.option("--seed", flags->options.seed, "Seed of the starts");
  command.option("--starts", flags->options.starts, "Starting points of the search").range(1, 1000);
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return run_fit(*flags); });
}

}  // namespace greynic::cli
