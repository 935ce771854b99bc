#include <chrono>
#include <memory>
#include <optional>

#include "command.h"
#include "greynic/check/array_check.h"
#include "greynic/files/json_file.h"
#include "greynic/files/shipped.h"
#include "greynic/language/array_file.h"
#include "greynic/language/explain_infeasible.h"
#include "greynic/language/model_reader.h"
#include "greynic/testgen/model_cover.h"
#include "progress.h"

namespace greynic::cli {
namespace {

/// Of a deadline: what is for explaining infeasible tuples.
constexpr double kShareToExplain = 0.5;

struct CoverFlags {
  std::string model;
  std::string format;
  std::string constraints;
  std::string seeds;
  std::string already;
  std::optional<int> strength;
  std::uint64_t seed = 1;
  std::optional<std::chrono::nanoseconds> deadline;
  int threads = 1;
  std::string check;
  bool lower_bound = false;
  bool explain = false;
  bool json = false;
};

/// The rows of a table join those that the model has; an empty path is none.
Result<void> add_rows(const language::CoverModel& model, const std::string& path,
                      language::LevelRows& into) {
  if (path.empty()) return {};
  const auto text = files::read_text(path);
  if (!text) return pass_on(text);
  auto rows = language::parse_rows(model, *text, path);
  if (!rows) return pass_on(rows);
  into.insert(into.end(), rows->begin(), rows->end());
  return {};
}

int check_file(const language::CoverModel& model, const CoverFlags& flags, int strength) {
  const auto text = files::read_text(flags.check);
  if (!text) return tell(text.error());
  const auto rows = language::parse_rows(model, *text, flags.check);
  if (!rows) return tell(rows.error());
  std::optional<Progress> progress;
  const auto tell_progress = [&](double share, double tuples) {
    if (share == 0) {
      say(fmt::format("at most {:.3g} tuples to count", tuples));
      progress.emplace("checking", 1.0);
    }
    progress->update(share);
  };
  const check::CheckReport report = check::check_array(model, *rows, strength, tell_progress);
  progress.reset();
  print(
      "rows {}\ninvalid {}\nseeds missing {}\ncovered {}\nmissing {}\ninfeasible {}\nundecided "
      "{}\n",
      report.rows, report.invalid_rows, report.seeds_missing, report.tuples_covered,
      report.tuples_missing, report.tuples_infeasible, report.tuples_undecided);
  for (const std::string& finding : report.findings) say(finding);
  say(report.good()
          ? fmt::format("good: every row is valid, every feasible {}-tuple is covered", strength)
          : "not good");
  return report.good() ? 0 : 1;
}

/// Infeasible tuples and what forbids them, in what the array left of the deadline.
void explain(const language::CoverModel& model, const testgen::Cover& summary, double deadline) {
  language::ExplainOptions options;
  if (deadline > 0) options.deadline_seconds = deadline - summary.seconds;
  std::optional<Progress> progress(std::in_place, "explaining", 1.0);
  options.progress = [&](double share, std::size_t explained) {
    progress->update(share, fmt::format("{} infeasible tuples", explained));
  };
  const auto explained = language::explain_infeasible(model, summary.infeasible, options);
  progress.reset();
  tell_infeasible(explained.lines, summary.tuples_infeasible - explained.lines.size());
}

int run(const CoverFlags& flags) {
  language::ModelFile file{files::shipped_file("examples", flags.model), std::nullopt,
                           std::nullopt};
  if (!flags.format.empty()) file.format = language::model_format_named(flags.format);
  if (!flags.constraints.empty()) file.constraints = flags.constraints;
  auto model = language::read_model(file);
  if (!model) return tell(model.error());
  for (const auto& [path, into] :
       {std::pair(&flags.seeds, &model->seeds), std::pair(&flags.already, &model->already)}) {
    if (auto added = add_rows(*model, *path, *into); !added) return tell(added.error());
  }
  const int strength = flags.strength.value_or(model->strength.value_or(2));
  if (!flags.check.empty()) return check_file(*model, flags, strength);

  testgen::CoverOptions options;
  options.strength = strength;
  options.seed = flags.seed;
  options.threads = flags.threads;
  options.report_lower_bound = flags.lower_bound;
  options.list_infeasible = flags.explain;
  if (flags.deadline) {
    if (flags.deadline->count() == 0) {
      return tell({ErrorCode::kBadInput, "a deadline of 0 leaves no time; give one such as 2s"});
    }
    options.deadline_seconds = std::chrono::duration<double>(*flags.deadline).count();
  }
  const double deadline = options.deadline_seconds;
  if (flags.explain) options.deadline_seconds *= 1 - kShareToExplain;
  options.announce = [](const testgen::CoverEstimate& estimate) {
    say(testgen::describe(estimate));
  };
  std::optional<Progress> progress(std::in_place, "covering", 1.0);
  options.progress = [&](double share, std::size_t rows) {
    progress->update(share, fmt::format("{} rows", rows));
  };
  const auto covered = testgen::cover_model(*model, options);
  progress.reset();
  if (!covered) return tell(covered.error());
  const std::string out = flags.json ? testgen::cover_to_json_text(*model, *covered, strength)
                                     : language::rows_to_tsv(*model, covered->rows);
  put_data(out);
  const testgen::Cover& summary = covered->summary;
  const std::string bound =
      summary.lower_bound_reason.empty()
          ? std::string()
          : fmt::format(", at least {} ({})", summary.lower_bound, summary.lower_bound_reason);
  const auto cost = language::cost_of(*model, covered->rows);
  say(fmt::format("rows {}{}{}; {} tuples covered, {} infeasible; {:.3f} s{}", covered->rows.size(),
                  bound, cost ? fmt::format("; cost {:.6g}", *cost) : "", summary.tuples_covered,
                  summary.tuples_infeasible, summary.seconds,
                  !summary.full              ? "; NOT FULL, the deadline came first: allow more"
                  : summary.deadline_reached ? "; the deadline ended it"
                                             : ""));
  if (flags.explain) explain(*model, summary, deadline);
  return 0;
}

}  // namespace

void add_cover(Program& program) {
  auto flags = std::make_shared<CoverFlags>();
  Command command = program.command(
      "cover", "A covering array for a model of PICT, CASA, a feature model or our own",
      "  greynic cover model.pict --strength 2 > rows.tsv\n  greynic cover model.citmodel "
      "--constraints model.constraints --deadline 2s --threads 2\n  greynic cover busybox.dimacs "
      "--lower-bound > rows.tsv\n  greynic cover model.json --strength 3 --check rows.tsv   # 0: "
      "good, 1: not\n  greynic cover model.json --already-run rows.tsv --strength 3 > more.tsv\n  "
      "greynic cover model.json --explain-infeasible > rows.tsv");
  command.option("model", flags->model, "The model file").required();
  command
      .option("--format", flags->format, "pict, casa, cnf or json; told from the file when absent")
      .choices({"pict", "casa", "cnf", "json"});
  command.option("--constraints", flags->constraints,
                 "CASA's constraints file; else NAME.constraints beside the model");
  command.option("--seeds", flags->seeds, "Rows that must be in, as a table");
  command.option(
      "--already-run", flags->already,
      "Rows that were run before, as a table: what they cover need not be covered again");
  command.option("--strength", flags->strength, "1 to 6; when absent, what the model says, or 2")
      .range(1, 6);
  command.option("--seed", flags->seed, "Seed of every random choice");
  command.option("--deadline", flags->deadline,
                 "Improve the array until then, e.g. 2s; else one fast pass");
  command.option("--threads", flags->threads, "Threads to use").range(1, 64);
  command.option("--check", flags->check, "Verify this array instead of making one");
  command.flag("--lower-bound", flags->lower_bound, "Spend time on a better lower bound");
  command.flag("--explain-infeasible", flags->explain,
               "Print each infeasible tuple and the constraints that forbid it, on stderr. Takes a "
               "minute at most, or half of the deadline");
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
