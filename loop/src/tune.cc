#include "greynic/loop/tune.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "greynic/campaign/laboratory.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "greynic/loop/explain_run.h"
#include "greynic/loop/layout_cost.h"
#include "greynic/loop/mask_ladder.h"
#include "greynic/loop/model_design.h"
#include "greynic/loop/report_run.h"
#include "greynic/loop/rule_input.h"
#include "greynic/optimizer/split.h"
#include "greynic/rules/traffic.h"
#include "greynic/target/interrupt.h"
#include "greynic/testgen/compiled_campaign.h"
#include "greynic/verify/verify.h"

namespace greynic::loop {
namespace {

void step(const Talk& talk, const std::string& text) { talk.line("== " + text); }

Result<void> run_campaign(const TuneOptions& tuning, const campaign::Prepared& prepared,
                          results::RunStore& store, TuneOutcome& outcome) {
  step(tuning.talk,
       fmt::format("run: {} configurations, {} repeats, on {}", prepared.plan.configurations.size(),
                   prepared.plan.campaign.measure.repeats, prepared.info.name));
  campaign::RunOptions options = campaign::options_of(prepared);
  const double total = static_cast<double>(prepared.plan.configurations.size()) *
                       static_cast<double>(options.repeats);
  options.progress = [&](const campaign::Progress& progress) {
    tuning.talk.show("measuring", static_cast<double>(progress.done), total);
  };
  auto summary = campaign::run(*prepared.device, prepared.plan.configurations, store, options);
  if (!summary) return summary.error().while_doing("running the campaign");
  outcome.run = *summary;
  if (!summary->complete) {
    return fail(ErrorCode::kInterrupted, "stopped; the same command goes on from there");
  }
  return {};
}

/// Even masks as far up as the rules in their order go, so that the law knows where it will be asked.
Result<void> climb_masks(const TuneOptions& options, const campaign::Prepared& prepared,
                         testgen::CompiledCampaign& campaign, const Configuration& at, double most,
                         results::RunStore& store, const TuneOutcome& outcome) {
  const auto limits = prepared.device->info().limits;
  const auto limit = limits.find(std::string(mask_factor(outcome.hop)));
  auto ladder = mask_ladder(at, outcome.hop, most, limit == limits.end() ? 0 : limit->second);
  std::erase_if(ladder, [&](const Configuration& rung) {
    const auto allowed = campaign.complete(rung, "a number of masks");
    return !allowed || *allowed != rung;  // the campaign forbids it
  });
  if (ladder.empty()) return {};
  step(options.talk,
       fmt::format("climb: {} tests of up to {:g} masks at {}", ladder.size(),
                   ladder.back().number(mask_factor(outcome.hop)), to_string(outcome.hop)));
  campaign::RunOptions how = campaign::options_of(prepared);
  const double total = static_cast<double>(ladder.size()) * how.repeats;
  how.progress = [&, done = 0.0](const campaign::Progress&) mutable {
    options.talk.show("measuring", ++done, total);
  };
  auto laboratory = campaign::Laboratory::create(*prepared.device, store, how);
  if (!laboratory) return pass_on(laboratory);
  return laboratory->complete(ladder, how.repeats);
}

Result<void> fit_model(const TuneOptions& options, results::RunStore& store, TuneOutcome& outcome) {
  step(options.talk, "fit");
  model::FitOptions fit_options;
  const auto form = model::form_named(options.model_form);
  if (!form) {
    return fail(ErrorCode::kBadInput, fmt::format("--form must be {}", model::kFormNames));
  }
  fit_options.form = *form;
  fit_options.seed = options.job.seed;
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  auto report = model::fit(*observations, fit_options);
  if (!report) {
    outcome.no_fit = report.error().message;
    return {};
  }
  outcome.fit = std::move(*report);
  const std::string text = outcome.fit->model->to_json_text();
  if (auto done = files::write_text(options.folder + "/model.json", text); !done) return done;
  return store.keep("model", text);
}

/// The hop whose masks the strongest cause names, where the layout helps most.
Hop hop_of(const causal::Explanation& explanation) {
  for (const causal::Cause& cause : explanation.causes) {
    for (const causal::Condition& condition : cause.all_of) {
      for (const Hop hop :
           {Hop::kServerDecap, Hop::kClientEncap, Hop::kServerEncap, Hop::kClientDecap}) {
        if (condition.factor == mask_factor(hop)) return hop;
      }
    }
  }
  return Hop::kServerDecap;
}

/// kInternal with the packet when a layout does not do what the rules do: it is then never applied.
Result<void> check_equivalent(const RuleSet& rules, const Layout& layout) {
  auto verdict = verify::verify(rules, layout);
  if (!verdict) return verdict.error().while_doing("verifying the layout");
  if (verdict->equivalent) return {};
  return fail(ErrorCode::kInternal, "the proposed layout is not equivalent: " +
                                        to_string(verdict->counterexample->packet) +
                                        "; it was not applied");
}

/// kBadInput where the device does not take the layouts that the caller gives, or a packet gets
/// another rule from one of them.
Result<void> check_given(const TuneOptions& options, const target::RuleHolder& holder,
                         const RuleSet& rules) {
  if (options.layout.empty()) return {};
  const auto layouts = files::read_model_layouts(options.layout);
  if (!layouts) return pass_on(layouts);
  if (auto taken = holder.takes(*layouts, options.layout); !taken) return taken;
  for (const auto& given : *layouts) {
    const auto verdict = verify::verify(rules, given.layout);
    if (!verdict) return verdict.error().while_doing("verifying " + options.layout);
    if (verdict->equivalent) continue;
    const std::string which =
        given.models.empty() ? "" : fmt::format(" for {}", fmt::join(given.models, ", "));
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: the layout{} does not do what {} does: {}; `greynic optimize` "
                            "makes one that does",
                            options.layout, which, options.rules,
                            to_string(verdict->counterexample->packet)));
  }
  return {};
}

/// The rules in the device's words, and the traffic that is to pass them.
Result<void> prepare_rules(const TuneOptions& options, const target::RuleHolder& holder,
                           RuleSet& rules, Traffic& traffic) {
  const std::size_t read = rules.rules.size();
  rules = holder.spell_out(std::move(rules));
  if (rules.rules.empty()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: none of its {} rules can match a packet", options.rules, read));
  }
  if (rules.rules.size() != read) {
    options.talk.line(
        fmt::format("{}: {} rules, {} with their headers named and without those that no packet "
                    "can match",
                    options.rules, read, rules.rules.size()));
  }
  auto made = rules::traffic_for(options.traffic, rules, options.job.seed);
  if (!made) return pass_on(made);
  traffic = std::move(*made);
  if (auto can = holder.check_traffic(traffic); !can) {
    return can.error().while_doing(fmt::format(
        "measuring {} with --traffic {} (`greynic optimize` lays rules out without measuring)",
        options.rules, options.traffic));
  }
  return {};
}

/// The layouts of a file in place of those that are made here; what is known of them is what they
/// cost.
Result<void> take_given(const TuneOptions& options, const target::RuleHolder& holder,
                        const RuleSet& rules, const Traffic& traffic,
                        const optimizer::CostModel& cost, TuneOutcome& outcome) {
  auto layouts = files::read_model_layouts(options.layout);
  if (!layouts) return pass_on(layouts);
  if (auto taken = holder.takes(*layouts, options.layout); !taken) return taken;
  outcome.by_model = weighed_by_model(rules, traffic, *layouts, holder.models());
  if (!outcome.by_model.empty()) {
    outcome.layout = outcome.by_model.front().made.made;
    return {};
  }
  optimizer::OptimizedLayout given;
  given.before = optimizer::cost_of(optimizer::layout_in_rule_order(rules), traffic);
  given.layout = std::move(layouts->front().layout);
  given.after = optimizer::cost_of(given.layout, traffic);
  given.rules_given = rules.rules.size();
  const bool split =
      optimizer::hardware_of(given.layout).tables.size() < given.layout.tables.size();
  for (optimizer::LayoutCost* side : {&given.before, &given.after}) {
    if (!cost || split) break;  // no law knows the price of the slow path
    auto predicted = cost(side->shares_by_tried);
    if (!predicted) return pass_on(predicted);
    side->prediction = std::move(*predicted);
  }
  outcome.layout = std::move(given);
  return {};
}

/// Layouts as they are made are kept with the run: after an interruption they are taken up again.
Result<void> make_by_model(const TuneOptions& options, const target::RuleHolder& holder,
                           const RuleSet& rules, const Traffic& traffic,
                           const optimizer::OptimizeOptions& asked, results::RunStore& store,
                           TuneOutcome& outcome) {
  constexpr const char* kKind = "layouts_by_model";
  const nlohmann::json question = {{"rules", options.rules},
                                   {"traffic", options.traffic},
                                   {"growth", asked.max_growth},
                                   {"seed", asked.seed}};
  ByModelJournal journal;
  auto kept = store.kept(kKind);
  if (!kept) return pass_on(kept);
  const auto left = nlohmann::json::parse(*kept, nullptr, false);
  if (left.is_object() && left.value("question", nlohmann::json()) == question) {
    auto layouts = files::model_layouts_from_json(left.at("layouts"), options.job.out);
    if (layouts) journal.done = std::move(*layouts);
  }
  journal.keep = [&](const ModelLayouts& done) {
    const nlohmann::json document = {{"question", question}, {"layouts", files::to_json(done)}};
    return store.keep(kKind, files::json_text(document));
  };
  auto made = optimize_by_model(rules, traffic, asked, holder.models(), journal, options.talk);
  if (!made) return pass_on(made);
  outcome.by_model = std::move(*made);
  outcome.layout = outcome.by_model.front().made.made;
  return {};
}

Result<void> make_layout(const TuneOptions& options, const target::RuleHolder& holder,
                         const RuleSet& rules, const Traffic& traffic,
                         optimizer::OptimizeOptions asked, results::RunStore& store,
                         TuneOutcome& outcome) {
  if (!options.layout.empty()) {
    return take_given(options, holder, rules, traffic, asked.cost, outcome);
  }
  if (options.growth) asked.max_growth = *options.growth;
  if (!options.one_layout && options.growth && worth_layouts_by_model(holder.models())) {
    return make_by_model(options, holder, rules, traffic, asked, store, outcome);
  }
  if (options.growth) {
    auto optimized = optimizer::optimize(rules, traffic, asked);
    if (!optimized) return optimized.error().while_doing("optimizing " + options.rules);
    outcome.layout = std::move(*optimized);
    return {};
  }
  auto curve = optimizer::optimize_at_knee(rules, traffic, asked);
  if (!curve) return curve.error().while_doing("optimizing " + options.rules);
  outcome.layout = std::exchange(curve->layout, {});
  outcome.curve = std::move(*curve);
  outcome.mask_curve = optimizer::mask_curve(rules);
  return {};
}

/// The layouts as the device gets them. What goes in is what is proven.
Result<void> verify_and_fit(const TuneOptions& options, const target::RuleHolder& holder,
                            const RuleSet& rules, TuneOutcome& outcome) {
  step(options.talk, "verify: by other code");
  const ModelLayouts made = outcome.by_model.empty() ? ModelLayouts{{{}, outcome.layout->layout}}
                                                     : layouts_of(outcome.by_model);
  for (const ModelLayout& part : made) {
    if (auto same = check_equivalent(rules, part.layout); !same) return same;
  }
  outcome.verified = true;
  outcome.fitted = holder.fit(made);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Layout& fitted = outcome.fitted->parts()[i].layout;
    if (fitted == made[i].layout) continue;
    step(options.talk, "verify: the form that this device searches fastest");
    if (auto same = check_equivalent(rules, fitted); !same) return same;
  }
  return files::write_model_layouts(outcome.fitted->parts(), options.folder + "/layout.json");
}

Result<void> optimize_rules(const TuneOptions& options, const target::RuleHolder& holder,
                            const RuleSet& rules, const Traffic& traffic, const Configuration& at,
                            results::RunStore& store, TuneOutcome& outcome) {
  step(options.talk, options.layout.empty() ? fmt::format("optimize: {} rules", rules.rules.size())
                                            : "layout: " + options.layout);
  optimizer::OptimizeOptions asked;
  asked.seed = options.job.seed;
  asked.limits = holder.limits();
  if (outcome.fit) asked.cost = optimizer::mask_cost(*outcome.fit->model, at, outcome.hop);
  if (auto made = make_layout(options, holder, rules, traffic, std::move(asked), store, outcome);
      !made) {
    return made;
  }
  if (auto good = verify_and_fit(options, holder, rules, outcome); !good) return good;
  const auto keep = [&](const char* kind, const Layout& layout) {
    return store.keep(kind, files::json_text(files::to_json(layout)));
  };
  if (auto kept = store.keep("optimization", optimization_text(options, outcome)); !kept) {
    return kept;
  }
  if (auto kept = keep("layout_before", optimizer::layout_in_rule_order(rules)); !kept) return kept;
  return keep("layout", outcome.fitted->layout());
}

Result<void> measure_again(const TuneOptions& options, const campaign::Prepared& prepared,
                           const RuleSet& rules, const Traffic& traffic, const Configuration& at,
                           results::RunStore& store, TuneOutcome& outcome) {
  const target::FittedLayout before = prepared.device->rules().fit(
      optimizer::layout_in_rule_order(rules), target::LayoutForm::kAsWritten);
  const GainQuestion question{.before = &before,
                              .after = &*outcome.fitted,
                              .traffic = &traffic,
                              .placement = {outcome.hop},
                              .at = at,
                              .metric = prepared.plan.campaign.wall.metric,
                              .duration = prepared.plan.campaign.measure.duration,
                              .seed = options.job.seed_of_measurements(),
                              .pairs = options.pairs};
  step(options.talk,
       fmt::format("apply and measure: {} pairs, old and new in turn", options.pairs));
  auto gain = measure_gain(*prepared.device, question, options.keep, [&](int pair) {
    options.talk.show("measuring the gain", pair, options.pairs);
  });
  if (!gain) {
    if (gain.error().code != ErrorCode::kUnsupported && gain.error().code != ErrorCode::kRefused) {
      return gain.error().while_doing("measuring the gain");
    }
    outcome.no_gain = gain.error().message;
    return {};
  }
  outcome.gain = *gain;
  const auto& said_before = outcome.layout->before.prediction;
  const auto& said_after = outcome.layout->after.prediction;
  std::optional<double> predicted;
  if (said_before && said_after) {
    outcome.forecasts = forecasts(*said_before, *said_after, *gain);
    const auto found = said_after->measures.find(question.metric);
    if (found != said_after->measures.end()) predicted = found->second.value;
  }
  return store.keep("gain", to_json_text(*gain, question, predicted, outcome.forecasts));
}

}  // namespace

Result<TuneOutcome> tune(const TuneOptions& options) {
  TuneOutcome outcome;
  // What can be wrong with the input is found before anything is measured.
  RuleSet rules;
  Traffic traffic;
  if (!options.rules.empty()) {
    auto read = load_rules({options.rules, options.rules_format}, options.talk);
    if (!read) return pass_on(read);
    rules = std::move(*read);
  }
  step(options.talk, "plan");
  campaign::Job job = options.job;
  job.model_design = design_by(nullptr);
  auto prepared = campaign::prepare(job);
  if (!prepared) return pass_on(prepared);
  for (const auto& [name, value] : prepared->settings) {
    options.talk.line(fmt::format("{:<27} {}", name, value));
  }
  if (!options.rules.empty()) {
    if (auto ready = prepare_rules(options, prepared->device->rules(), rules, traffic); !ready) {
      return pass_on(ready);
    }
    if (auto good = check_given(options, prepared->device->rules(), rules); !good) {
      return pass_on(good);
    }
  }
  auto store = campaign::start(*prepared);
  if (!store) return pass_on(store);
  const target::InterruptGuard guard;
  if (auto done = run_campaign(options, *prepared, *store, outcome); !done) return pass_on(done);

  step(options.talk, "explain: ordering the tests that it needs");
  auto explanation = explain_on(*prepared->device, *store, options.explain, options.talk);
  if (!explanation) return explanation.error().while_doing("explaining the run");
  outcome.explanation = std::move(*explanation);
  outcome.hop = hop_of(outcome.explanation);
  Configuration at;  // under what traffic a layout is judged
  if (!options.rules.empty()) {
    auto compiled = testgen::CompiledCampaign::create(prepared->plan.campaign);
    if (!compiled) return pass_on(compiled);
    auto baseline = compiled->complete_baseline();
    if (!baseline) return pass_on(baseline);
    at = std::move(*baseline);
    const double most =
        optimizer::cost_of(optimizer::layout_in_rule_order(rules), traffic).most_matchers_tried;
    if (auto done = climb_masks(options, *prepared, *compiled, at, most, *store, outcome); !done) {
      return pass_on(done);
    }
  }
  if (auto done = fit_model(options, *store, outcome); !done) return pass_on(done);

  if (!options.rules.empty()) {
    auto done =
        optimize_rules(options, prepared->device->rules(), rules, traffic, at, *store, outcome);
    if (done) done = measure_again(options, *prepared, rules, traffic, at, *store, outcome);
    if (!done) return pass_on(done);
  }
  step(options.talk, "report");
  outcome.report = options.folder + "/report.html";
  const auto written = write_report(
      *store, options.job.out, outcome.fit ? &*outcome.fit->model : nullptr, {}, outcome.report);
  if (!written) return pass_on(written);
  return outcome;
}

}  // namespace greynic::loop
