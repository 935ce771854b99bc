#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "command.h"
#include "greynic/campaign/job.h"
#include "greynic/core/units.h"
#include "greynic/files/shipped.h"
#include "greynic/loop/model_design.h"
#include "progress.h"

namespace greynic::cli {
namespace {

struct RunFlags {
  campaign::Job job;
  bool dry_run = false;
  bool json = false;
  std::chrono::nanoseconds sample_every = std::chrono::milliseconds(10);
};

std::string duration_text(double seconds) {
  return to_string(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

/// The commonest first; those of single configurations often differ in a number only.
void print_reasons(const std::map<std::string, std::size_t>& reasons) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(count, reason);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    print("    {:>6} x  {}\n", sorted[i].first, sorted[i].second);
  }
  if (sorted.size() > kShown) {
    print("              and {} reasons more; `greynic export` has them all\n",
          sorted.size() - kShown);
  }
}

void print_summary(const RunFlags& flags, const campaign::Prepared& prepared,
                   const campaign::RunSummary& summary) {
  if (flags.json) {
    nlohmann::json outcomes = nlohmann::json::object();
    for (const auto& [outcome, count] : summary.outcomes) {
      outcomes[std::string(to_string(outcome))] = count;
    }
    nlohmann::json reasons = nlohmann::json::object();
    for (const auto& [outcome, counts] : summary.reasons) {
      reasons[std::string(to_string(outcome))] = counts;
    }
    const nlohmann::json document = {{"run", prepared.out},
                                     {"campaign", prepared.plan.campaign.name},
                                     {"target", flags.job.target},
                                     {"seed", prepared.header.seed},
                                     {"plan_seed", prepared.plan.seed},
                                     {"configurations", prepared.plan.configurations.size()},
                                     {"observations", summary.total},
                                     {"found_stored", summary.found},
                                     {"stored_now", summary.measured},
                                     {"outcomes", outcomes},
                                     {"reasons", reasons},
                                     {"complete", summary.complete},
                                     {"seconds", summary.seconds}};
    put_json(document);
    return;
  }
  print("run             {}\n", prepared.out);
  print("configurations  {}\n", prepared.plan.configurations.size());
  print("observations    {} of {} ({} were there, {} made now in {})\n",
        summary.found + summary.measured, summary.total, summary.found, summary.measured,
        duration_text(summary.seconds));
  for (const auto& [outcome, count] : summary.outcomes) {
    print("  {:<14}{}\n", to_string(outcome), count);
    const auto why = summary.reasons.find(outcome);
    if (why != summary.reasons.end()) print_reasons(why->second);
  }
}

int measure(const RunFlags& flags, const campaign::Prepared& prepared) {
  auto store = campaign::start(prepared);
  if (!store) return tell(store.error());
  campaign::RunOptions options = campaign::options_of(prepared);
  options.sample_every = flags.sample_every;
  Progress bar("measuring", static_cast<double>(prepared.plan.configurations.size()) *
                                static_cast<double>(options.repeats));
  options.progress = [&](const campaign::Progress& progress) {
    bar.update(static_cast<double>(progress.done));
  };
  auto summary = campaign::run(*prepared.device, prepared.plan.configurations, *store, options);
  bar.clear();
  if (!summary) {
    return tell(Error{summary.error().code, summary.error().message +
                                                "\nwhat was measured is kept in " + prepared.out +
                                                "; the same command goes on from there"});
  }
  print_summary(flags, prepared, *summary);
  if (!summary->complete) {
    say("stopped; what was measured is kept, and the same command goes on from there");
    return exit_code(ErrorCode::kInterrupted);
  }
  // A script that goes on to explain or compare would find nothing.
  if (summary->found == 0 && summary->measured > 0 &&
      !summary->outcomes.contains(Outcome::kMeasured)) {
    say("nothing could be measured; the reasons stand above");
    return exit_code(ErrorCode::kRefused);
  }
  return 0;
}

int run(const RunFlags& flags) {
  if (flags.sample_every.count() != 0 && flags.sample_every < std::chrono::microseconds(100)) {
    return tell({ErrorCode::kBadInput, "--counters-every: 100us at least, such as 1ms"});
  }
  campaign::Job job = flags.job;
  job.file = files::shipped_file("campaigns", job.file);
  Progress planning("planning", 1.0);
  job.model_design = loop::design_by(nullptr);
  job.progress = [&](double share, std::size_t configurations) {
    planning.update(share, fmt::format("{} configurations", configurations));
  };
  auto prepared = campaign::prepare(job);
  planning.clear();
  if (!prepared) return tell(prepared.error());
  for (const auto& [name, value] : prepared->settings) say(fmt::format("{:<27} {}", name, value));
  // The rules of RDMA that joined are of interest to who plans, not to who measures.
  for (const std::string& note : prepared->plan.report.notes) {
    if (flags.dry_run || !note.starts_with("rule of RDMA")) say("note: " + note);
  }
  if (prepared->plan.report.target_seconds.value_or(0.0) > 0.0) {
    say(fmt::format("{:<28}{}", "expected time",
                    duration_text(*prepared->plan.report.target_seconds)));
  }
  if (flags.dry_run) {
    campaign::RunSummary nothing;
    nothing.total = prepared->plan.configurations.size() *
                    static_cast<std::size_t>(prepared->plan.campaign.measure.repeats);
    print_summary(flags, *prepared, nothing);
    return 0;
  }
  return measure(flags, *prepared);
}

}  // namespace

void add_run(Program& program) {
  auto flags = std::make_shared<RunFlags>();
  Command command =
      program.command("run", "Measure a campaign on a target; goes on where it was stopped",
                      "  greynic run configs/campaigns/mask_wall.json --target twin:cx6 -o run.db\n"
                      "  greynic run configs/campaigns/qp_wall.json --target twin:cx7 --set "
                      "qp_count=64,4096\n"
                      "  greynic run configs/campaigns/faults.json --target "
                      "'verbs:rxe0?peer_device=rxe1'\n"
                      "  greynic run configs/campaigns/ovs_masks.json --target ovs:br0\n"
                      "  greynic run plan.json --target 'exec:./measure.sh' -o run.db --dry-run");
  command
      .option("campaign", flags->job.file,
              "Campaign, or a plan of `greynic plan -o`: a file, or the name of one that comes "
              "with greynic")
      .required();
  command.option("--target", flags->job.target, "What is measured; see `greynic devices`")
      .required();
  command
      .option("-o,--out", flags->job.out, "Run file; results/<date>-<campaign>/run.db when absent")
      .writes();
  command.option("--seed", flags->job.seed, "Seed of the plan and of every measurement");
  command.option("--plan-seed", flags->job.plan_seed, "Seed of the plan alone");
  command.option("--measure-seed", flags->job.measure_seed,
                 "Seed of the measurements alone: measures the same plan again, independently");
  command.option("--set", flags->job.overrides,
                 "factor=level,level: replaces the campaign's levels; may come again");
  command.option("--counters-every", flags->sample_every,
                 "Read the target's counters so often while traffic runs, and keep them with each "
                 "observation: 1ms, 10ms; 0s: not");
  command.option("--threads", flags->job.threads, "Threads for planning").range(1, 1024);
  command.flag("--dry-run", flags->dry_run, "Plan and print the settings; measure nothing");
  command.flag("--json", flags->json, "Summary as JSON on stdout");
  command.run([flags, &program] {
    flags->job.command = program.command_line();
    return run(*flags);
  });
}

}  // namespace greynic::cli
