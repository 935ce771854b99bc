#include "greynic/testgen/plan.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "command.h"
#include "greynic/core/units.h"
#include "greynic/files/campaign_file.h"
#include "greynic/files/output_file.h"
#include "greynic/files/shipped.h"
#include "greynic/loop/extend_run.h"
#include "greynic/loop/model_design.h"
#include "greynic/testgen/campaign_model.h"
#include "progress.h"

namespace greynic::cli {
namespace {

struct PlanFlags {
  std::string campaign;
  std::string out;
  std::string target;
  std::uint64_t seed = 1;
  std::vector<std::string> set;
  std::optional<std::chrono::nanoseconds> deadline;
  std::vector<std::string> extend;  ///< runs; the first one's campaign counts
  std::string for_model;
  std::string model;
  std::uint64_t budget = 50;
  int threads = 1;
  std::size_t explain = 0;
  bool json = false;
};

std::string seconds_to_text(double seconds) {
  return to_string(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

void print_report(const testgen::Plan& plan) {
  const testgen::SpaceReport& report = plan.report;
  print("{:<20} {}\n", "raw space", describe(report.raw));
  print("{:<20} {}\n", "after topology", describe(report.after_topology));
  print("{:<20} {}\n", "after constraints", describe(report.after_constraints));
  print("{:<20} {}{}\n", "kept", report.kept,
        report.lower_bound > 0
            ? fmt::format("  (at least {}: {})", report.lower_bound, report.lower_bound_reason)
            : "");
  if (report.tuples_covered > 0) {
    print("{:<20} {} covered, {} infeasible\n", "tuples", report.tuples_covered,
          report.tuples_infeasible);
  }
  print("{:<20} {}\n", "time to generate", seconds_to_text(report.generation_seconds));
  print("{:<20} {}\n", "time on the target",
        report.target_seconds ? seconds_to_text(*report.target_seconds)
                              : "unknown; name one with --target");
}

Result<testgen::Plan> make(const PlanFlags& flags) {
  testgen::PlanOptions options;
  options.seed = flags.seed;
  options.threads = flags.threads;
  options.overrides = flags.set;
  options.explain_infeasible = flags.explain;
  if (flags.deadline) {
    if (flags.deadline->count() == 0) {
      return fail(ErrorCode::kBadInput, "a deadline of 0 leaves no time; give one such as 2s");
    }
    options.deadline_seconds = std::chrono::duration<double>(*flags.deadline).count();
  }
  if (!flags.target.empty()) {
    auto limits = loop::limits_of(flags.target);
    if (!limits) return pass_on(limits);
    options.device = std::move(*limits);
  }
  options.announce = [](const testgen::CoverEstimate& estimate) {
    say(testgen::describe(estimate));
  };
  std::optional<Progress> progress(std::in_place, "planning", 1.0);
  options.progress = [&](double share, std::size_t rows) {
    progress->update(share, fmt::format("{} configurations", rows));
  };
  bool explaining = false;
  options.explain_progress = [&](double share, std::size_t explained) {
    if (!std::exchange(explaining, true)) progress.emplace("explaining", 1.0);
    progress->update(share, fmt::format("{} infeasible tuples", explained));
  };
  if (!flags.extend.empty()) return loop::plan_extension(flags.extend, options, terminal_talk());
  std::unique_ptr<model::Model> known;
  if (!flags.model.empty()) {
    auto loaded = model::load(flags.model);
    if (!loaded) return pass_on(loaded);
    known = std::move(*loaded);
  }
  options.model_design = loop::design_by(known.get());
  auto campaign = flags.campaign.empty()
                      ? model::campaign_for(*known, flags.budget)
                      : files::read_campaign(files::shipped_file("campaigns", flags.campaign));
  if (!campaign) return pass_on(campaign);
  const std::string inputs[] = {testgen::topology_path(*campaign)};
  if (auto good = files::not_an_input(flags.out, inputs); !good) return pass_on(good);
  if (!flags.for_model.empty()) {
    campaign->design = {};
    campaign->design.kind = DesignKind::kModel;
    campaign->design.law = flags.for_model;
    campaign->design.count = flags.budget;
  }
  auto changed = files::override_levels(std::move(*campaign), flags.set);
  if (!changed) return pass_on(changed);
  return testgen::make_plan(*changed, options);
}

/// `plan --for-model LAW model.json` names a model where a campaign is expected otherwise.
PlanFlags sort_out(PlanFlags flags) {
  if (flags.for_model.empty() || !flags.model.empty()) return flags;
  if (!model::load(flags.campaign)) return flags;
  std::swap(flags.model, flags.campaign);
  return flags;
}

int run(const PlanFlags& given) {
  if (given.campaign.empty() && given.extend.empty()) {
    return tell({ErrorCode::kBadInput, "name a campaign file, or the run to add to: --extend RUN"});
  }
  const PlanFlags flags = sort_out(given);
  const auto plan = make(flags);
  if (!plan) return tell(plan.error());
  for (const std::string& note : plan->report.notes) say(note);
  tell_infeasible(plan->report.infeasible, plan->report.infeasible_left);
  if (!flags.out.empty()) {
    if (auto written = testgen::write_plan(*plan, flags.out); !written)
      return tell(written.error());
    say(fmt::format("wrote {}", flags.out));
  }
  if (flags.json) {
    put(testgen::plan_to_json_text(*plan));
  } else {
    print_report(*plan);
  }
  return 0;
}

}  // namespace

void add_plan(Program& program) {
  auto flags = std::make_shared<PlanFlags>();
  Command command = program.command(
      "plan", "The smallest valid set of configurations that a campaign's design asks for",
      "  greynic plan configs/campaigns/mask_wall.json -o plan.json\n  greynic plan "
      "configs/campaigns/qp_wall.json --target twin:cx6 --seed 7\n  greynic plan "
      "configs/campaigns/qp_wall.json --set qp_count=1,64 --json\n  greynic plan "
      "configs/campaigns/leaf_spine.json --explain-infeasible 3\n  greynic plan --extend run.db -o "
      "more.json\n  greynic plan --extend run.db more.db -o still_more.json\n  greynic plan "
      "--for-model pipeline --budget 50 model.json -o next.json");
  const Option campaign = command.option("campaign", flags->campaign,
                                         "Campaign: a file, or the name of one that comes with "
                                         "greynic; with --for-model a model will do");
  const Option run_file = command
                              .option("--extend", flags->extend,
                                      "Plan what to add to this run (and to further ones of its "
                                      "campaign): tuples still open, causes explained")
                              .list();
  campaign.excludes(run_file);
  command.option("-o,--out", flags->out, "Write the plan here").writes();
  command.option("--target", flags->target, "Ask this target for its limits and its speed");
  command.option("--seed", flags->seed, "Seed of every random choice");
  command.option("--set", flags->set, "factor=level,level: replace a factor's levels").list();
  command.option("--deadline", flags->deadline,
                 "Improve a covering plan until then, e.g. 2s; else one fast pass");
  const Option for_model =
      command.option("--for-model", flags->for_model,
                     "Choose the settings that tell most about this law: pipeline");
  for_model.excludes(run_file);
  command.option("--budget", flags->budget, "Settings to choose with --for-model")
      .range(1, 100000)
      .needs(for_model);
  command
      .option("--model", flags->model, "Model of what is known already, when a campaign is given")
      .needs(for_model);
  command.option("--threads", flags->threads, "Threads to use").range(1, 64);
  command.option("--explain-infeasible", flags->explain,
                 "Explain up to this many infeasible tuples: which rules forbid each, on stderr. "
                 "Takes a minute at most, or half of the deadline");
  command.flag("--json", flags->json, "The plan as JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
