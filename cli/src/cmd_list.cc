#include <fmt/core.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "counted_rules.h"
#include "greynic/files/core_json.h"
#include "greynic/target/target.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string target;
  std::string layout;
  bool as_json = false;
};

/// Rules with the share of their table's packets that each was hit by, as far as any were counted.
RuleSet weighed(const std::vector<target::CountedRule>& counted) {
  std::map<std::uint32_t, double> packets_of;
  for (const auto& row : counted) packets_of[row.rule.table] += static_cast<double>(row.packets);
  RuleSet set;
  for (const auto& row : counted) {
    FlowRule rule = row.rule;
    const double packets = packets_of[rule.table];
    if (packets > 0) rule.weight = static_cast<double>(row.packets) / packets;
    set.rules.push_back(std::move(rule));
  }
  return set;
}

int run(const Flags& flags) {
  auto target = target::open(flags.target);
  if (!target) return tell(target.error());
  const auto counted = (*target)->rules().counted_rules();
  if (!counted) return tell(counted.error());
  if (!flags.layout.empty()) {
    const auto written = files::write_layout(flat_layout(weighed(*counted)), flags.layout);
    if (!written) return tell(written.error());
    say(flags.layout + " has the rules as a layout, with the share of packets that hit each");
  }
  print_rules(*counted, flags.as_json);
  if (!(*target)->info().keeps_layout) {
    say("the device belongs to this process, which gave it no rules; `greynic apply --hold` shows "
        "their counters when it ends");
  }
  return 0;
}

}  // namespace

void add_list(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.command(
      "list", "The rules that a device holds, with its packet and byte counters",
      "  greynic list --target flows:tc:enp1s0f0\n"
      "  greynic list --target 'ovs:br0?rundir=/run/openvswitch' --json\n"
      "  greynic list --target flows:tc:enp1s0f0 -o now.json     # as a layout, weighed by hits\n"
      "  greynic optimize now.json -o better.json\n"
      "  greynic apply better.json --target flows:tc:enp1s0f0");
  command.option("--target", flags->target, "Where; greynic devices lists what there is")
      .required();
  command.option("-o,--out", flags->layout, "Write them as a layout file too");
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
