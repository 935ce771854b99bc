#include "greynic/loop/fit_runs.h"

#include <filesystem>
#include <set>

#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "greynic/results/store.h"

namespace greynic::loop {
namespace {

/// The model goes into the run, where `greynic report` finds it, and to `path` when one is given.
Result<void> keep(const model::FitReport& report, const std::string& run_path,
                  const std::string& path, const Talk& talk) {
  const std::string text = report.model->to_json_text();
  if (!path.empty()) {
    if (auto written = files::write_text(path, text); !written) return written;
    talk.line("model written to " + path);
  }
  auto run = results::RunStore::open_to_read(run_path);
  if (!run) return pass_on(run);
  if (auto kept = run->keep("model", text); !kept) {
    talk.line("the model is not kept with the run: " + kept.error().message);
  }
  return {};
}

Result<std::vector<Observation>> observations_of(const std::string& path) {
  auto run = results::RunStore::open_to_read(path);
  if (!run) return pass_on(run);
  return run->observations();
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

/// The file of each run's model; empty texts when none is to be written.
Result<std::vector<std::string>> model_files(const std::vector<std::string>& runs,
                                             const std::string& out) {
  if (runs.size() == 1 || out.empty()) return std::vector<std::string>(runs.size(), out);
  std::set<std::string> names;
  for (const std::string& path : runs) {
    if (!names.insert(stem_of(path)).second) {
      return fail(ErrorCode::kBadInput,
                  path +
                      ": two runs have this file name, so their models would overwrite each "
                      "other; rename one");
    }
  }
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return fail(ErrorCode::kBadInput, out + ": " + error.message());
  std::vector<std::string> files;
  for (const std::string& path : runs) files.push_back(out + "/" + stem_of(path) + ".json");
  return files;
}

Result<std::vector<model::FitReport>> fit(const std::vector<std::string>& runs,
                                          const model::FitOptions& options) {
  std::vector<std::vector<Observation>> observations;
  for (const std::string& path : runs) {
    auto read = observations_of(path);
    if (!read) return pass_on(read);
    observations.push_back(std::move(*read));
  }
  if (runs.size() > 1) return model::fit_together(observations, options);
  auto report = model::fit(observations.front(), options);
  if (!report) return report.error().while_doing(runs.front());
  std::vector<model::FitReport> one;
  one.push_back(std::move(*report));
  return one;
}

}  // namespace

Result<std::vector<model::FitReport>> fit_runs(const std::vector<std::string>& runs,
                                               const model::FitOptions& options,
                                               const std::string& out, const Talk& talk) {
  if (runs.size() > 1 && options.form != model::Form::kAuto &&
      options.form != model::Form::kPipeline) {
    return fail(ErrorCode::kBadInput,
                "several runs are fitted together by the pipeline law only; leave out --form");
  }
  const auto files = model_files(runs, out);
  if (!files) return pass_on(files);
  auto reports = fit(runs, options);
  if (!reports) return reports;
  for (std::size_t r = 0; r < reports->size(); ++r) {
    if (auto kept = keep((*reports)[r], runs[r], (*files)[r], talk); !kept) return pass_on(kept);
  }
  return reports;
}

Result<model::ModelComparison> compare_model_files(const std::string& a, const std::string& b,
                                                   const std::vector<std::string>& runs,
                                                   std::uint64_t seed) {
  const auto first = model::load(a);
  if (!first) return pass_on(first);
  const auto second = model::load(b);
  if (!second) return pass_on(second);
  std::vector<Observation> observations;
  for (const std::string& path : runs) {
    const auto more = observations_of(path);
    if (!more) return pass_on(more);
    observations.insert(observations.end(), more->begin(), more->end());
  }
  return model::compare_models(**first, **second, observations, seed);
}

}  // namespace greynic::loop
