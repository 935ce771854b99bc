#include "greynic/loop/tune.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/campaign/job.h"
#include "greynic/files/campaign_file.h"
#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "greynic/files/shipped.h"
#include "progress.h"
#include "rule_options.h"

namespace greynic::cli {
namespace {

using nlohmann::json;

struct TuneFlags {
  loop::TuneOptions options;
  bool json = false;
};

void line(std::string_view name, const std::string& text) { print("{:<12}{}\n", name, text); }

std::string predicted_text(const optimizer::LayoutCost& cost, const std::string& metric) {
  if (!cost.prediction || !cost.prediction->measures.contains(metric)) return "not predicted";
  const auto& measure = cost.prediction->measures.at(metric);
  return fmt::format("{:.4g} [{:.4g}, {:.4g}]{}", measure.value, measure.low, measure.high,
                     cost.prediction->extrapolated ? " (extrapolated)" : "");
}

void print_layout(const loop::TuneOutcome& outcome, const std::string& metric) {
  if (!outcome.layout) return;
  const auto& before = outcome.layout->before;
  const auto& after = outcome.layout->after;
  line("layout",
       fmt::format("{} rules in {} matchers -> {} rules in {} matchers, {} tables", before.rules,
                   before.matchers, after.rules, after.matchers, after.tables));
  line("", fmt::format("a packet tries {:.2f} matchers -> {:.2f}", before.matchers_tried,
                       after.matchers_tried));
  if (!(outcome.fitted->layout() == outcome.layout->layout)) {
    line("applied", fmt::format("in the form this device searches fastest: {} matchers, {} rules",
                                outcome.fitted->layout().matcher_count(),
                                outcome.fitted->layout().rule_count()));
  }
  if (!outcome.by_model.empty()) {
    print("\n{}\n", loop::to_text(outcome.by_model));
  }
  line("proof",
       fmt::format("equivalent: {} pairs of rules scanned, {} regions compared{}",
                   outcome.layout->proof.pairs, outcome.layout->proof.regions,
                   outcome.verified ? ", and verified by code apart from the search" : ""));
  line("predicted", fmt::format("{}: {} -> {}", metric, predicted_text(before, metric),
                                predicted_text(after, metric)));
  const std::string latency(measure::kLatencyP50);
  if (latency == metric || !before.prediction || !before.prediction->measures.contains(latency))
    return;
  line("", fmt::format("{}: {} -> {}", latency, predicted_text(before, latency),
                       predicted_text(after, latency)));
}

/// Predicted beside measured, and whether one refutes the other.
void print_forecasts(const std::map<std::string, loop::Forecast>& forecasts,
                     const std::string& metric) {
  const char* head = "gain";
  for (const std::string& name : {metric, std::string(measure::kLatencyP50)}) {
    const auto found = forecasts.find(name);
    if (found == forecasts.end()) continue;
    const auto& [said, is, refuted] = found->second;
    line(head, fmt::format("{}: x {:.3f} [{:.3f}, {:.3f}] predicted, x {:.3f} [{:.3f}, {:.3f}] "
                           "measured: {}",
                           name, said.value, said.low, said.high, is.value, is.low, is.high,
                           refuted ? fmt::format("refuted, off by {:+.0f} %",
                                                 100.0 * (said.value / is.value - 1.0))
                                   : "not refuted"));
    head = "";
    if (metric == measure::kLatencyP50) break;
  }
}

void print_summary(const loop::TuneOutcome& outcome, const std::string& folder) {
  const causal::Explanation& explanation = outcome.explanation;
  print("\n");
  line("walls", fmt::format("{} of {} configurations ({})", explanation.walls.size(),
                            explanation.configurations, explanation.bound));
  for (const causal::Cause& cause : explanation.causes) {
    line("cause", fmt::format("{}", cause.text()));
    line("", fmt::format("{} walls, confidence {:.2f} %, {} at {:.1f} % [{:.1f}, {:.1f}] of {:.4g}",
                         cause.walls_explained, cause.confidence * 100, explanation.metric,
                         cause.severity.value * 100, cause.severity.low * 100,
                         cause.severity.high * 100, explanation.expected));
  }
  line("tests", fmt::format("{} of the campaign, {} ordered by the explanation",
                            explanation.tests_read, explanation.tests_ordered));
  if (outcome.fit) {
    line("law", fmt::format("{}, {} observations; `greynic fit` shows its parameters",
                            outcome.fit->model->law(), outcome.fit->observations_used));
    for (const auto& [measure, r2] : outcome.fit->r2) {
      const auto error = outcome.fit->cross_validated_error.find(measure);
      line("", fmt::format("{}: R2 {:.4f}{}", measure, r2,
                           error == outcome.fit->cross_validated_error.end()
                               ? ""
                               : fmt::format(", {:.2f} % off on settings left out",
                                             100.0 * error->second)));
    }
  } else {
    line("law", "none: " + outcome.no_fit);
  }
  print_layout(outcome, explanation.metric);
  if (outcome.gain) {
    const loop::Gain& gain = *outcome.gain;
    line("measured", fmt::format("{}: {:.4g} -> {:.4g}, ratio {:.3f} [{:.3f}, {:.3f}], {} pairs",
                                 explanation.metric, gain.before, gain.after, gain.ratio,
                                 gain.ratio_low, gain.ratio_high, gain.pairs));
    for (const auto& [name, before] : gain.measures_before) {
      const auto after = gain.measures_after.find(name);
      if (name == explanation.metric || after == gain.measures_after.end()) continue;
      const std::string was = fmt::format("{:.4g}", before);
      const std::string is = fmt::format("{:.4g}", after->second);
      const std::string change =
          before > 0.0 ? fmt::format("  {:+.1f} %", 100.0 * (after->second / before - 1.0)) : "";
      if (was != is) line("", fmt::format("{}: {} -> {}{}", name, was, is, change));
    }
    print_forecasts(outcome.forecasts, explanation.metric);
  } else if (!outcome.no_gain.empty()) {
    line("measured", "nothing: " + outcome.no_gain);
  }
  line("report", outcome.report);
  line("files", folder);
}

void print_json(const loop::TuneOutcome& outcome, const std::string& folder) {
  json document = {{"folder", folder},
                   {"report", outcome.report},
                   {"explanation", json::parse(causal::to_json_text(outcome.explanation))}};
  if (outcome.fit) document["model"] = json::parse(outcome.fit->model->to_json_text());
  if (outcome.layout) {
    const auto cost = [](const optimizer::LayoutCost& of) {
      return json{{"tables", of.tables},
                  {"matchers", of.matchers},
                  {"rules", of.rules},
                  {"matchers_tried", of.matchers_tried}};
    };
    document["layout"] = {{"before", cost(outcome.layout->before)},
                          {"after", cost(outcome.layout->after)},
                          {"verified", outcome.verified}};
  }
  if (!outcome.by_model.empty()) {
    document["layout"]["models"] = loop::to_json(outcome.by_model);
  }
  if (outcome.gain) {
    document["gain"] = {{"before", outcome.gain->before},
                        {"after", outcome.gain->after},
                        {"ratio", outcome.gain->ratio},
                        {"low", outcome.gain->ratio_low},
                        {"high", outcome.gain->ratio_high},
                        {"pairs", outcome.gain->pairs},
                        {"measures_before", outcome.gain->measures_before},
                        {"measures_after", outcome.gain->measures_after},
                        {"forecasts", loop::to_json(outcome.forecasts)}};
  }
  put_json(document);
}

int tune_command(TuneFlags flags) {
  loop::TuneOptions& options = flags.options;
  options.job.file = files::shipped_file("campaigns", options.job.file);
  options.talk = terminal_talk();
  if (options.folder.empty()) {
    const auto campaign = files::read_campaign(options.job.file);
    if (!campaign) return tell(campaign.error());
    options.folder = campaign::default_folder(campaign->name);
  }
  options.job.out = options.folder + "/run.db";
  const std::vector<std::string> inputs = {options.job.file, options.rules, options.traffic,
                                           options.layout};
  for (const char* written : {"/model.json", "/layout.json", "/report.html"}) {
    if (auto good = files::not_an_input(options.folder + written, inputs); !good) {
      return tell(good.error());
    }
  }
  const auto outcome = loop::tune(options);
  if (!outcome) return tell(outcome.error());
  if (flags.json) {
    print_json(*outcome, options.folder);
  } else {
    print_summary(*outcome, options.folder);
  }
  return 0;
}

}  // namespace

void add_tune(Program& program) {
  auto flags = std::make_shared<TuneFlags>();
  loop::TuneOptions& options = flags->options;
  Command command = program.command(
      "tune", "The whole loop: find the walls, explain them, fit, re-lay the rules, prove, measure",
      "  greynic tune configs/campaigns/mask_wall.json --target twin:cx6 \\\n"
      "      --rules configs/rules/container_host.flows\n"
      "  greynic tune configs/campaigns/ovs_masks.json --target ovs:br0 --rules filters.rules\n"
      "  greynic tune campaign.json --target twin:cx6 --rules filters.rules --traffic uniform "
      "--json");
  command
      .option("campaign", options.job.file,
              "Campaign file, or the name of one that comes with greynic")
      .required();
  command.option("--target", options.job.target, "Device under test").required();
  command.option("--rules", options.rules,
                 "Rule file to lay out anew, or the name of one that comes with greynic; when "
                 "absent, stop after the fit");
  command.option("--format", options.rules_format,
                 "Format of the rules; told from the text when absent");
  command.option("--traffic", options.traffic, "uniform, zipf:EXPONENT or a traffic file");
  add_growth(command, options.growth);
  command.option("--layout", options.layout,
                 "Layout file of these rules, or of a layout for each model, to verify and measure "
                 "in place of "
                 "one that is made");
  command.flag("--one-layout", options.one_layout,
               "One layout for all models of a fleet, in place of one for each");
  command.option("--form", options.model_form, "Law to fit: " + std::string(model::kFormNames));
  command.option("--seed", options.job.seed, "Seed of everything random");
  command.option("--plan-seed", options.job.plan_seed, "Seed of the plan alone");
  command.option("--measure-seed", options.job.measure_seed,
                 "Seed of the measurements alone: measures the same plan again, independently");
  command.option("--set", options.job.overrides, "factor=level,level: replaces levels").list();
  command.option("--pairs", options.pairs, "Pairs of the gain measurement").range(2, 1000);
  command.option("--confidence", options.explain.confidence, "Confidence of walls and causes")
      .range(0.5, 0.999999);
  command.option("--most-tests", options.explain.most_tests, "Tests the explanation may order");
  command.flag("--keep", options.keep, "Leave the new layout on the device; else roll back");
  command.option("--out", options.folder,
                 "Folder for all files; results/<date>-<campaign> when absent");
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags, &program] {
    flags->options.job.command = program.command_line();
    return tune_command(*flags);
  });
}

}  // namespace greynic::cli
