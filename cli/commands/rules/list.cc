#include <memory>

#include "command.h"
#include "greynic/files/core_json.h"
#include "greynic/loop/counted_rules.h"
#include "greynic/target/target.h"

namespace greynic::cli {
namespace {

struct ListFlags {
  std::string target;
  std::string layout;
  bool as_json = false;
};

int run(const ListFlags& flags) {
  auto target = target::open(flags.target);
  if (!target) return tell(target.error());
  const auto counted = (*target)->rules().counted_rules();
  if (!counted) return tell(counted.error());
  if (!flags.layout.empty()) {
    const auto written = files::write_layout(loop::weighed_layout(*counted), flags.layout);
    if (!written) return tell(written.error());
    say(flags.layout + ": the rules as a layout, each with its share of the counted packets");
  }
  put(flags.as_json ? loop::to_json_text(*counted) : loop::to_text(*counted));
  if (!(*target)->info().keeps_layout) {
    say("this device lives only as long as the command, so it holds no rules here; `greynic apply "
        "--hold` keeps it open and prints the counters when it ends");
  }
  return 0;
}

}  // namespace

void add_list(Program& program) {
  auto flags = std::make_shared<ListFlags>();
  Command command =
      program.command("list", "Show the rules that a device holds, and how often each was hit",
                      "  greynic list --target flows:tc:enp1s0f0\n"
                      "  greynic list --target 'ovs:br0?rundir=/run/openvswitch' --json\n"
                      "  greynic list --target flows:tc:enp1s0f0 -o now.json     # a layout, rules "
                      "weighted by hits\n"
                      "  greynic optimize now.json -o better.json\n"
                      "  greynic apply better.json --target flows:tc:enp1s0f0");
  command
      .option("--target", flags->target,
              "Target that holds the rules; `greynic devices` lists the targets")
      .required();
  command.option("-o,--out", flags->layout, "Also write the rules as a layout file").writes();
  command.flag("--json", flags->as_json, "JSON on stdout");
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
