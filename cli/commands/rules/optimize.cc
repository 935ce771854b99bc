#include "greynic/optimizer/optimize.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "fleet_layouts.h"
#include "follow_rules.h"
#include "greynic/files/core_json.h"
#include "greynic/flows/rule_commands.h"
#include "greynic/loop/by_model.h"
#include "greynic/loop/layout_cost.h"
#include "greynic/loop/layout_explanation.h"
#include "greynic/model/model.h"
#include "greynic/optimizer/mask_curve.h"
#include "greynic/rules/traffic.h"
#include "greynic/target/interrupt.h"
#include "greynic/target/target.h"
#include "progress.h"
#include "rule_options.h"
#include "sharing_advice.h"
#include "split_rules.h"
#include "update_layout.h"

namespace greynic::cli {
namespace {

struct OptimizeFlags {
  loop::RuleInput rules;
  std::string connections;
  std::vector<std::string> models;
  std::string at;
  Hop hop = Hop::kServerDecap;
  std::string traffic = "uniform";
  std::string out;
  std::uint64_t seed = 1;
  std::optional<double> growth = optimizer::OptimizeOptions{}.max_growth;
  std::optional<flows::CommandForm> as;
  bool single_table = false;
  bool keep_tables = false;
  bool quick = false;
  bool merge_masks = false;
  bool ranges = false;
  bool one_layout = false;
  bool explain = false;
  bool as_json = false;
  bool follow = false;
  std::string target;
  std::string made_for;
  FollowFlags following;
  UpdateFlags update;
  SplitFlags split;
};

std::string cell(const optimizer::LayoutCost& cost, const std::string& name) {
  const auto found = cost.prediction->measures.find(name);
  if (found == cost.prediction->measures.end()) return "-";
  const auto& measure = found->second;
  return fmt::format("{:.4g} ({:.4g}..{:.4g}){}", measure.value, measure.low, measure.high,
                     cost.prediction->extrapolated ? " *" : "");
}

void print_table(const optimizer::OptimizedLayout& result) {
  const auto row = [](std::string_view what, const auto& before, const auto& after) {
    print("{:<28} {:>26} {:>26}\n", what, before, after);
  };
  const auto& before = result.before;
  const auto& after = result.after;
  row("", "before", "after");
  row("tables", before.tables, after.tables);
  row("matchers, in all tables", before.matchers, after.matchers);
  row("rules", before.rules, after.rules);
  row("matchers tried, mean", fmt::format("{:.2f}", before.matchers_tried),
      fmt::format("{:.2f}", after.matchers_tried));
  row("matchers tried, 99 %", before.matchers_tried_p99, after.matchers_tried_p99);
  row("matchers tried, most", before.most_matchers_tried, after.most_matchers_tried);
  row("jumps taken, mean", fmt::format("{:.2f}", before.jumps), fmt::format("{:.2f}", after.jumps));
  if (before.prediction && after.prediction) {
    for (const auto& [name, measure] : before.prediction->measures) {
      row("predicted " + name, cell(before, name), cell(after, name));
    }
    if (before.prediction->extrapolated || after.prediction->extrapolated) {
      print("* outside what the model was fitted to: read it as a direction\n");
    }
  }
  print("no single chain of these masks tries fewer than {:.2f} on the mean; it has {} or more\n",
        result.bound.matchers_tried, result.bound.matchers);
  print("equivalent: proven for {} layout tables over {} pairs of rules, {} regions\n",
        result.proof.tables, result.proof.pairs, result.proof.regions);
  for (const std::string& note : result.notes) print("{}\n", note);
}

void print_curve(const optimizer::GrowthCurve& curve) {
  print("\n{:>8} {:>9} {:>16} {:>16}\n", "growth", "rules", "matchers tried", "99 %");
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const optimizer::GrowthPoint& point = curve.points[i];
    print("{:>8} {:>9} {:>16.2f} {:>16}{}\n", point.growth, point.rules, point.matchers_tried,
          point.matchers_tried_p99, i == curve.knee ? "  <- the knee, taken" : "");
  }
}

/// What was found, with the curve when the growth was to be found too.
struct Found {
  optimizer::OptimizedLayout result;
  std::optional<optimizer::GrowthCurve> curve;  ///< without its layout, which is above
};

/// Inside each rule. In tables that follow one another packets of one rule meet many others, so one says little.
std::size_t packets_drawn(const RuleSet& rules) {
  constexpr std::size_t kOfPipelines = 3;
  const bool one_table = std::ranges::all_of(
      rules.rules, [&](const FlowRule& rule) { return rule.table == rules.rules.front().table; });
  return one_table ? 1 : kOfPipelines;
}

Result<Found> search(const RuleSet& rules, const Traffic& traffic,
                     const optimizer::OptimizeOptions& options, bool auto_growth) {
  if (!auto_growth) {
    auto made = optimizer::optimize(rules, traffic, options);
    if (!made) return pass_on(made);
    return Found{std::move(*made), std::nullopt};
  }
  Progress progress("trying growths", 1.0);
  double done = 0.0;
  auto curve = optimizer::optimize_at_knee(
      rules, traffic, options, [&](const optimizer::GrowthPoint& point, std::size_t all) {
        done += 1.0 / static_cast<double>(all);
        progress.update(done, fmt::format("growth {}", point.growth));
      });
  if (!curve) return pass_on(curve);
  Found found{std::move(curve->layout), std::nullopt};
  curve->layout = {};
  found.curve = std::move(*curve);
  return found;
}

/// The layout as commands on stdout; what it saves goes to people.
int print_commands(const OptimizeFlags& flags, const optimizer::OptimizedLayout& result) {
  const auto commands = flows::rule_commands(result.layout, *flags.as);
  if (!commands) return tell(commands.error());
  put_data(*commands);
  say(fmt::format("{:.2f} matchers tried before, {:.2f} after; proven for {} tables",
                  result.before.matchers_tried, result.after.matchers_tried, result.proof.tables));
  for (const std::string& note : result.notes) say(note);
  return 0;
}

int show(const OptimizeFlags& flags, const Found& found, const RuleSet& rules,
         const Traffic& traffic) {
  if (flags.as) return print_commands(flags, found.result);
  std::optional<optimizer::Explanation> explained;
  if (flags.explain) {
    explained =
        optimizer::explain(optimizer::layout_in_rule_order(rules), found.result.layout, traffic);
  }
  if (flags.as_json) {
    nlohmann::json document = loop::to_json(found.result, flags.rules.path, flags.traffic);
    if (found.curve) document["curve"] = loop::to_json(*found.curve);
    if (explained) document["explained"] = loop::to_json(*explained);
    put_json(document);
    return 0;
  }
  print_table(found.result);
  if (found.curve) print_curve(*found.curve);
  if (explained) put(loop::to_text(*explained));
  return 0;
}

/// The device's limits; of two last tables the lower, and what the commands' program cannot say.
void keep_to(LayoutLimits limits, optimizer::OptimizeOptions& options) {
  limits.whole_fields.merge(options.limits.whole_fields);
  limits.last_table = std::min(options.limits.last_table, limits.last_table);
  options.limits = std::move(limits);
}

/// --for: the target's limits, and those of its models. Nothing is changed on it.
Result<std::vector<ModelLimits>> ask_target(const std::string& name,
                                            optimizer::OptimizeOptions& options) {
  auto target = target::open(name);
  if (!target) return pass_on(target);
  target::RuleHolder& holder = (*target)->rules();
  if (&holder == &target::no_rules()) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} holds no rules, so it has no limits for a layout; name the target "
                            "that does (`greynic devices`)",
                            name));
  }
  keep_to(holder.limits(), options);
  say(fmt::format("for {}: {}", name, to_string(options.limits)));
  return holder.models();
}

/// Whether what is asked for can be made for each model of a fleet by itself.
bool can_be_by_model(const OptimizeFlags& flags) {
  return !flags.one_layout && flags.growth && !flags.as && !flags.explain && !flags.merge_masks &&
         !flags.split.asked() && flags.update.layout.empty() && flags.models.empty();
}

/// The rules as the target spells them, laid out within its limits, and kept in order there.
int follow(OptimizeFlags flags, RuleSet given, optimizer::OptimizeOptions options) {
  const target::InterruptGuard guard;
  auto target = target::open(flags.target);
  if (!target) return tell(target.error());
  target::RuleHolder& holder = (*target)->rules();
  RuleSet rules = holder.spell_out(std::move(given));
  const auto traffic = rules::traffic_for(flags.traffic, rules, flags.seed);
  if (!traffic) return tell(traffic.error());
  keep_to(holder.limits(), options);
  const auto found = search(rules, *traffic, options, !flags.growth);
  if (!found) return tell(found.error());
  flags.following.as_json = flags.as_json;
  flags.following.options.placement.hop = flags.hop;
  return follow_rules(flags.following, std::move(rules), found->result.layout, holder);
}

Result<void> write_layout_if_asked(const OptimizeFlags& flags, const Layout& layout) {
  if (flags.out.empty()) return {};
  return files::write_layout(layout, flags.out);
}

int update(const OptimizeFlags& flags, RuleSet rules, const optimizer::OptimizeOptions& options) {
  if (flags.explain || !flags.models.empty() || !flags.growth) {
    return tell({ErrorCode::kBadInput,
                 "--update searches for no layout, so it takes neither --explain, --model nor "
                 "--growth auto; leave them out, or leave out --update"});
  }
  UpdateFlags asked = flags.update;
  asked.was.format = flags.rules.format;
  const auto updated = update_layout(asked, std::move(rules), flags.traffic, options, flags.seed);
  if (!updated) return tell(updated.error());
  if (const auto written = write_layout_if_asked(flags, updated->layout); !written) {
    return tell(written.error());
  }
  if (flags.as) {
    const auto commands = flows::rule_commands(updated->layout, *flags.as);
    if (!commands) return tell(commands.error());
    put_data(*commands);
    say(updated->text);
    return 0;
  }
  put(flags.as_json ? updated->json_text + "\n" : updated->text);
  return 0;
}

int split(const OptimizeFlags& flags, const RuleSet& rules, const Traffic& traffic,
          const optimizer::OptimizeOptions& options) {
  if (flags.explain || !flags.growth || flags.single_table) {
    return tell({ErrorCode::kBadInput,
                 "--hardware says how many entries there are, so it takes neither --growth auto, "
                 "--single-table nor --explain; leave them out"});
  }
  const auto made = split_rules(flags.split, rules, traffic, options);
  if (!made) return tell(made.error());
  if (const auto written = write_layout_if_asked(flags, made->made.layout); !written) {
    return tell(written.error());
  }
  if (flags.as) {
    const auto commands = flows::rule_commands(made->made.layout, *flags.as);
    if (!commands) return tell(commands.error());
    put_data(*commands);
    say(split_text(flags.split, *made));
    return 0;
  }
  put(flags.as_json ? split_json(flags.split, *made, flags.rules.path, flags.traffic)
                    : split_text(flags.split, *made));
  return 0;
}

/// --merge-masks: one chain for each table, of fewer masks.
int merge(const OptimizeFlags& flags, const RuleSet& rules, const Traffic& traffic,
          const optimizer::OptimizeOptions& options) {
  const auto merged = optimizer::merge_masks(rules, traffic, options, flags.growth.value_or(0.0));
  if (!merged) return tell(merged.error());
  if (const auto written = write_layout_if_asked(flags, merged->layout.layout); !written) {
    return tell(written.error());
  }
  if (flags.as_json && !flags.as) {
    nlohmann::json document = loop::to_json(merged->layout, flags.rules.path, flags.traffic);
    document["mask_curve"] = loop::to_json(merged->curve);
    put_json(document);
    return 0;
  }
  const int shown = show(flags, {merged->layout, std::nullopt}, rules, traffic);
  if (!flags.as) put(loop::to_text(merged->curve));
  return shown;
}

int run(const OptimizeFlags& flags) {
  if (!flags.connections.empty()) {
    return advise_sharing({flags.connections, flags.models, flags.out, flags.as_json});
  }
  if (flags.rules.path.empty()) {
    return tell({ErrorCode::kBadInput, "name a rule file, or --connections MATRIX.json"});
  }
  const auto at = parse_configuration(flags.at);
  if (!at) return tell(at.error());
  std::unique_ptr<model::Model> model;
  optimizer::OptimizeOptions options;
  options.seed = flags.seed;
  if (flags.growth) options.max_growth = *flags.growth;
  options.single_table = flags.single_table;
  options.join_tables = !flags.keep_tables;
  options.quick = flags.quick;
  if (flags.as) options.limits = flows::limits_of(flags.as->program);
  if (flags.models.size() > 1) {
    return tell({ErrorCode::kBadInput, "rules take one --model; only --connections takes several"});
  }
  if (!flags.models.empty()) {
    auto loaded = model::load(flags.models.front());
    if (!loaded) return tell(loaded.error());
    model = std::move(*loaded);
    options.cost = optimizer::mask_cost(*model, *at, flags.hop);
  }
  const auto rules = loop::load_rules(flags.rules, terminal_talk());
  if (!rules) return tell(rules.error());
  std::vector<ModelLimits> models;
  if (!flags.made_for.empty()) {
    auto asked = ask_target(flags.made_for, options);
    if (!asked) return tell(asked.error());
    models = std::move(*asked);
  }
  if (flags.follow) return follow(flags, *rules, options);
  if (!flags.update.layout.empty()) return update(flags, *rules, options);
  if (flags.ranges) options.limits.most_ranges = 2;
  const auto traffic = rules::traffic_for(flags.traffic, *rules, flags.seed, packets_drawn(*rules));
  if (!traffic) return tell(traffic.error());
  if (can_be_by_model(flags) && loop::worth_layouts_by_model(models)) {
    return optimize_for_fleet({flags.rules.path, flags.traffic, flags.out, flags.as_json}, *rules,
                              *traffic, options, models);
  }
  if (flags.split.asked()) return split(flags, *rules, *traffic, options);
  if (flags.merge_masks) return merge(flags, *rules, *traffic, options);
  const auto found = search(*rules, *traffic, options, !flags.growth);
  if (!found) return tell(found.error());
  if (const auto written = write_layout_if_asked(flags, found->result.layout); !written) {
    return tell(written.error());
  }
  return show(flags, *found, *rules, *traffic);
}

/// --follow and what belongs to it.
Option add_following(Command& command, OptimizeFlags& flags, const Option& connections) {
  FollowFlags& following = flags.following;
  Option follow = command.flag(
      "--follow", flags.follow,
      "Install the layout on --target and keep its matchers in order by the counters of its rules, "
      "until Ctrl-C; each step is proven first, and taken back when its gain does not come");
  follow.excludes(connections);
  const Option target =
      command.option("--target", flags.target, "Target that --follow installs on");
  target.needs(follow);
  follow.needs(target);
  command
      .option("--store", following.options.store,
              "Folder in which --follow keeps the layout of the device, to go on with it later")
      .needs(follow);
  command.option("--every", following.every, "How often --follow looks at the counters")
      .needs(follow);
  command
      .option("--act-above", following.options.act_above,
              "Share of the matchers tried that must be to save before --follow acts")
      .range(0.0, 1.0)
      .needs(follow);
  command
      .option("--rules-a-step", following.options.most_rules,
              "Rules that may change their place in one step of --follow")
      .needs(follow);
  command
      .option("--packets", following.options.fewest_packets,
              "Packets between two looks below which --follow concludes nothing")
      .needs(follow);
  command.option("--polls", following.polls, "Looks after which --follow ends").needs(follow);
  return follow;
}

/// --update and what belongs to it.
void add_updating(Command& command, OptimizeFlags& flags, const Option& connections,
                  const Option& follow) {
  UpdateFlags& update = flags.update;
  const Option layout = command.option(
      "--update", update.layout,
      "A layout of the rules as they were (--was): only what RULES changes is laid out and proven, "
      "rule by rule, with no new search");
  layout.excludes(connections);
  layout.excludes(follow);
  const Option was = command.option("--was", update.was.path,
                                    "The rules that the layout of --update was made from");
  command
      .flag(
          "--beside", update.beside,
          "While all rules are laid out anew, a second thread does so; steps go on, and what they "
          "cannot mend goes to software until then")
      .needs(layout);
  was.needs(layout);
  layout.needs(was);
  command
      .option(
          "--drift", update.most_drift,
          "Share of matchers tried by which --update may fall behind the last full layout before "
          "all rules are laid out anew")
      .range(0.0, 100.0)
      .needs(layout);
}

}  // namespace

void add_optimize(Program& program) {
  auto flags = std::make_shared<OptimizeFlags>();
  Command command = program.command(
      "optimize",
      "An equivalent rule layout that tries fewer matchers, proven; or how connections share QPs",
      "  greynic optimize filters.rules --model published:cx6 -o layout.json\n"
      "  greynic optimize flows.txt --traffic zipf:1.1 --growth 1.1 --json\n"
      "  greynic optimize flows.txt --model model.json --at "
      "operation=SEND,message_bytes=8388608 \\\n"
      "                   --hop client_encap --traffic traffic.json -o layout.json\n"
      "  greynic optimize --connections connections.json --model model.json -o advice.json\n"
      "  greynic optimize made:acl:1000:7 --growth auto --explain\n"
      "  greynic optimize filters.rules --follow --target flows:tc:enp1s0f0 --store kept\n"
      "  greynic optimize new.rules --update old.json --was old.rules -o new.json\n"
      "  greynic optimize filters.rules --for twin:e810 -o layout.json\n"
      "  greynic optimize filters.rules --hardware 500 --traffic zipf:1.1 -o layout.json\n"
      "  greynic optimize container_host --as tc:enp1s0f0 > filters.tc   # to review");
  const Option rules = add_rule_input(command, flags->rules);
  const Option connections = command.option(
      "--connections", flags->connections,
      "Connections between hosts (docs/formats/connections.md): whether and how they share "
      "QPs, for `greynic broker --advice`");
  connections.excludes(rules);
  command.option("--model", flags->models,
                 "Model file, or published:cx4 cx5 cx6 cx7 bf3 e810; without it nothing is "
                 "predicted. With --connections it may come again, for other message sizes");
  command.option("--at", flags->at, "Configuration to predict for: factor=level,factor=level");
  add_hop(command, flags->hop);
  command.option("--traffic", flags->traffic,
                 "uniform (as many packets inside each rule), zipf:EXPONENT, or a traffic file");
  command.option("-o,--out", flags->out, "Write the layout, or the advice, here").writes();
  command.option("--seed", flags->seed, "Seed of the made-up traffic and of the search");
  add_growth(command, flags->growth);
  command.flag("--single-table", flags->single_table, "No jumps: one chain for each table");
  command.flag(
      "--keep-tables", flags->keep_tables,
      "Of a pipeline, no tables are joined: each is laid out by itself, as --update needs it");
  command.flag(
      "--quick", flags->quick,
      "Take the first layout that fits: a fifth of the time, a sixth more matchers tried");
  const Option merging = command.flag("--merge-masks", flags->merge_masks,
                                      "One chain for each table, with masks merged by writing "
                                      "rules out, as many as --growth allows; "
                                      "draws the curve of masks against rules");
  command.flag(
      "--explain", flags->explain,
      "Also say for the hottest flows, the tables and the masks what packets tried before, "
      "what they try now, and why");
  const Option ranges =
      command
          .flag("--ranges", flags->ranges,
                "The device compares ports with ranges: 1024 to 65535 is one rule, not six (--for "
                "and --follow ask the target)")
          .excludes(connections);
  const auto read_form = [flags](const std::string& text) -> Result<void> {
    const auto form = flows::command_form(text);
    if (!form) return pass_on(form);
    flags->as = *form;
    return {};
  };
  command.option("--as", read_form,
                 "The layout as commands on stdout: ovs (ovs-ofctl), tc:INTERFACE (tc -batch) or "
                 "rte_flow:PORT (testpmd)");
  const Option follow = add_following(command, *flags, connections);
  const Option made_for = command.option(
      "--for", flags->made_for,
      "Target whose limits the layout keeps to: numbers of tables, of rules a table and of masks, "
      "and what else it says; nothing is changed on it");
  made_for.excludes(connections);
  command
      .flag("--one-layout", flags->one_layout,
            "For a fleet of several models: one layout for all, in place of one for each")
      .needs(made_for);
  made_for.excludes(follow);
  for (const Option& asks : {made_for, follow}) ranges.excludes(asks);
  add_updating(command, *flags, connections, follow);
  const Option hardware = add_splitting(command, flags->split);
  for (const Option& other : {connections, follow, ranges}) {
    hardware.excludes(other);
    merging.excludes(other);
  }
  merging.excludes(hardware);
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
