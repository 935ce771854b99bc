#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "greynic/files/core_json.h"
#include "greynic/loop/counted_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/target/interrupt.h"
#include "greynic/target/target.h"
#include "rule_options.h"

namespace greynic::cli {
namespace {

struct ApplyFlags {
  std::string layout;
  std::string target;
  Hop hop = Hop::kServerDecap;
  std::string traffic;
  bool dry_run = false;
  bool hold = false;
  bool undo = false;
  bool as_json = false;
};

nlohmann::json to_json(const Layout& layout) {
  nlohmann::json tables = nlohmann::json::array();
  for (const LayoutTable& table : layout.tables) {
    std::size_t rules = 0;
    for (const Matcher& matcher : table.matchers) rules += matcher.rules.size();
    tables.push_back({{"id", table.id}, {"matchers", table.matchers.size()}, {"rules", rules}});
  }
  return {{"matchers", layout.matcher_count()},
          {"rules", layout.rule_count()},
          {"tables", std::move(tables)}};
}

void print_json(const target::FittedLayout& fitted, const ApplyFlags& flags, bool applied) {
  nlohmann::json document = to_json(fitted.layout());
  document["target"] = flags.target;
  document["hop"] = to_string(flags.hop);
  document["applied"] = applied;
  if (fitted.by_model()) {
    document.erase("matchers");
    document.erase("rules");
    document.erase("tables");
    for (const ModelLayout& part : fitted.parts()) {
      nlohmann::json one = to_json(part.layout);
      one["names"] = part.models;
      document["models"].push_back(std::move(one));
    }
  }
  put_json(document);
}

void print_layout(const std::string& where, const Layout& layout) {
  print("{}: {} tables, {} matchers, {} rules\n", where, layout.tables.size(),
        layout.matcher_count(), layout.rule_count());
  constexpr std::size_t kTablesShown = 10;
  for (std::size_t i = 0; i < layout.tables.size(); ++i) {
    const LayoutTable& table = layout.tables[i];
    if (i == kTablesShown) {
      print("  ... and {} tables more\n", layout.tables.size() - kTablesShown);
      break;
    }
    for (const Matcher& matcher : table.matchers) {
      if (&matcher - table.matchers.data() == static_cast<std::ptrdiff_t>(kTablesShown)) {
        print("  table {:<5} ... and {} matchers more\n", table.id,
              table.matchers.size() - kTablesShown);
        break;
      }
      print("  table {:<5} priority {:<5} {:>6} rules  {}\n", table.id, matcher.priority,
            matcher.rules.size(), to_string(matcher.mask));
    }
  }
}

void print_what(const target::FittedLayout& fitted, const ApplyFlags& flags, bool applied) {
  if (flags.as_json) return print_json(fitted, flags, applied);
  for (const ModelLayout& part : fitted.parts()) {
    std::string where = fmt::format("{} at {}", flags.target, to_string(flags.hop));
    if (fitted.by_model()) where += fmt::format(", {}", fmt::join(part.models, ", "));
    print_layout(where, part.layout);
  }
  print("{}\n", applied ? "applied" : "would be accepted; nothing was changed");
}

/// What an earlier apply changed, perhaps of another process, goes back.
int undo(const ApplyFlags& flags) {
  auto target = target::open(flags.target);
  if (!target) return tell(target.error());
  if (!(*target)->info().keeps_layout) {
    return tell(Error{ErrorCode::kBadInput,
                      fmt::format("nothing to undo on {}: what is applied there goes when the "
                                  "process that applied it ends",
                                  flags.target)});
  }
  if (const auto back = (*target)->rules().roll_back(); !back) return tell(back.error());
  print("{} has the rules of before the first apply\n", flags.target);
  return 0;
}

void wait_for_interrupt() {
  constexpr std::chrono::milliseconds kLook{100};
  while (!target::interrupted()) std::this_thread::sleep_for(kLook);
}

int run(const ApplyFlags& flags) {
  if (flags.layout.empty()) {
    return tell({ErrorCode::kBadInput, "name the layout: `greynic apply layout.json --target T`"});
  }
  const auto layout = files::read_model_layouts(flags.layout);
  if (!layout) return tell(layout.error());
  Traffic traffic;
  if (!flags.traffic.empty()) {
    auto read = rules::read_traffic(flags.traffic);
    if (!read) return tell(read.error());
    traffic = std::move(*read);
  }
  // From before the device is opened: whatever is under way ends in order.
  const target::InterruptGuard guard;
  auto target = target::open(flags.target);
  if (!target) return tell(target.error());
  target::RuleHolder& holder = (*target)->rules();
  if (const auto taken = holder.takes(*layout, flags.layout); !taken) return tell(taken.error());
  const target::FittedLayout fitted = holder.fit(*layout);
  const target::Placement placement{flags.hop};
  // All or nothing: after an error the rules are as they were.
  const auto done =
      flags.dry_run ? holder.check(fitted, placement)
                    : holder.install(fitted, flags.traffic.empty() ? nullptr : &traffic, placement);
  if (!done) return tell(done.error());
  print_what(fitted, flags, !flags.dry_run);
  if (flags.dry_run) return 0;
  if (flags.hold) {
    std::fflush(stdout);  // whether that worked is asked at the end: the rules must go back
    say("holding the layout; Ctrl-C puts back what was there");
    wait_for_interrupt();
    const auto counted = holder.counted_rules();
    if (const auto back = holder.roll_back(); !back) return tell(back.error());
    if (counted) put(flags.as_json ? loop::to_json_text(*counted) : loop::to_text(*counted));
  } else if (!(*target)->info().keeps_layout) {
    say("the device belongs to this process and the layout goes with it; --hold stays until "
        "Ctrl-C");
  }
  return 0;
}

}  // namespace

void add_apply(Program& program) {
  auto flags = std::make_shared<ApplyFlags>();
  Command command = program.command(
      "apply",
      "Install a layout on a target, or one for each model of a fleet: all of it or nothing",
      "  greynic apply layout.json --target twin:cx6 --dry-run   # what would change\n"
      "  greynic apply layout.json --target flows:tc:enp1s0f0\n"
      "  greynic apply --undo --target flows:tc:enp1s0f0            # as it was before\n"
      "  greynic apply layout.json --target 'ovs:br0?rundir=/run/openvswitch'\n"
      "  greynic apply layout.json --target flows:dpdk:net_tap0 --hold");
  const Option layout =
      command.option("LAYOUT", flags->layout, "Layout file (docs/formats/layout.md)");
  command
      .option("--target", flags->target,
              "Target that takes the layout; `greynic devices` lists the targets")
      .required();
  add_hop(command, flags->hop);
  command.option("--traffic", flags->traffic,
                 "Traffic file that later measurements send through it");
  command.flag("--dry-run", flags->dry_run, "Check and say what would change; change nothing");
  command.flag("--hold", flags->hold,
               "Stay until Ctrl-C, then say what went through each rule and put back what was "
               "there: for devices that belong to the process");
  const Option back = command.flag("--undo", flags->undo,
                                   "Put back the rules of before the first apply, without LAYOUT");
  back.excludes(layout);
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return flags->undo ? undo(*flags) : run(*flags); });
}

}  // namespace greynic::cli
