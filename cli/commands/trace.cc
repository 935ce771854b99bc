#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/bpf/hooks.h"
#include "greynic/daemon/ending.h"
#include "greynic/files/shipped.h"
#include "greynic/trace/rules.h"
#include "greynic/trace/topology.h"
#include "greynic/trace/tracer.h"
#include "outlets/trace_outlets.h"
#include "progress.h"
#include "trace_hosts.h"

namespace greynic::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  std::string rules;
  std::optional<std::chrono::nanoseconds> duration;
  TraceOutletFlags outlets;
  bool json = false, measures = false;
};

constexpr std::chrono::milliseconds kTend{50};
constexpr std::chrono::seconds kReport{1};

// -- hooks --------------------------------------------------------------------------------------

struct Wanted {
  bpf::HookKind kind;
  const char* place;
  const char* use;  ///< empty: the tracer does without it
  bool needed = true;
};

constexpr Wanted kHooks[] = {
    {bpf::HookKind::kTypedTracepoint, "net_dev_queue", "a packet is queued on a device"},
    {bpf::HookKind::kTypedTracepoint, "netif_receive_skb", "a device has received a packet"},
    {bpf::HookKind::kTypedTracepoint, "consume_skb", "a packet has served its purpose"},
    {bpf::HookKind::kTypedTracepoint, "kfree_skb", "a packet is dropped, with reason and place"},
    {bpf::HookKind::kRawTracepoint, "net_dev_queue", ""},
    {bpf::HookKind::kFunctionEntry, "__dev_queue_xmit", ""},
    {bpf::HookKind::kKprobe, "", ""},
    {bpf::HookKind::kUprobe, "", ""},
    {bpf::HookKind::kTcx, "", "in band: a point of a path", false},
    {bpf::HookKind::kClsact, "", "in band: a point of a path, where there is no tcx", false},
};

int show_hooks(const Flags& flags) {
  nlohmann::json rows = nlohmann::json::array();
  bool whole = true;
  bool has_tcx = false;
  for (const Wanted& wanted : kHooks) {
    const bpf::Hook hook = bpf::probe_hook(wanted.kind, wanted.place);
    has_tcx = has_tcx || (hook.kind == bpf::HookKind::kTcx && hook.available);
    const bool spared = hook.kind == bpf::HookKind::kClsact && has_tcx;
    const bool used = *wanted.use != '\0' && !spared;
    whole = whole && (hook.available || !used || !wanted.needed);
    const std::string name =
        std::string(bpf::name_of(hook.kind)) + (hook.place.empty() ? "" : "/" + hook.place);
    std::string why = hook.why_not;
    if (hook.available) {
      why = used ? wanted.use
            : spared
                ? "offered; a tcx link goes with its process, a filter of clsact needs a keeper"
            : hook.kind == bpf::HookKind::kUprobe ? "offered; packets pass no function of a program"
                                                  : "offered; tp_btf sees the same for less";
    }
    if (flags.json) {
      rows.push_back({{"hook", name},
                      {"available", hook.available},
                      {"used", used && hook.available},
                      {"why", why}});
    } else {
      print("{:<4} {:<5} {:<28} {}\n", hook.available ? "yes" : "no",
            used && hook.available ? "used" : "-", name, why);
    }
  }
  if (flags.json) put_json(rows);
  if (!whole) say("a hook that is needed is missing: `greynic trace run` cannot work here");
  return whole ? 0 : 3;
}

// -- topology -----------------------------------------------------------------------------------

std::string joined_to(const trace::Topology& topology, const trace::Device& device) {
  std::string text;
  if (device.peer) text += " peer " + topology.label(*device.peer);
  if (device.bridge) text += " port of " + topology.label(*device.bridge);
  if (device.lower) text += " over " + topology.label(*device.lower);
  if (device.vni) text += " vni " + std::to_string(*device.vni);
  return text;
}

nlohmann::json topology_json(const trace::Topology& topology) {
  nlohmann::json places = nlohmann::json::array();
  for (std::size_t p = 0; p < topology.places.size(); ++p) {
    const trace::Place& place = topology.places[p];
    nlohmann::json devices = nlohmann::json::array();
    for (const trace::Device& device : topology.devices) {
      if (device.place != p) continue;
      const auto label = [&](const std::optional<std::size_t>& other) {
        return other ? nlohmann::json(topology.label(*other)) : nlohmann::json(nullptr);
      };
      nlohmann::json addresses = nlohmann::json::array();
      for (const auto& address : device.addresses)
        addresses.push_back(trace::address_text(address));
      devices.push_back(
          {{"name", device.name},
           {"index", device.index},
           {"kind", device.kind},
           {"mtu", device.mtu},
           {"up", device.up},
           {"addresses", addresses},
           {"peer", label(device.peer)},
           {"bridge", label(device.bridge)},
           {"lower", label(device.lower)},
           {"vni", device.vni ? nlohmann::json(*device.vni) : nlohmann::json(nullptr)}});
    }
    places.push_back({{"name", place.name},
                      {"kind", place.runtime},
                      {"inode", place.inode},
                      {"containers", place.containers},
                      {"devices", devices}});
  }
  return places;
}

int show_topology(const Flags& flags) {
  const auto topology = trace::discover();
  if (!topology) return tell(topology.error());
  if (flags.json) {
    put_json(topology_json(*topology));
    return 0;
  }
  for (std::size_t p = 0; p < topology->places.size(); ++p) {
    print("{} ({})\n", topology->places[p].name, topology->places[p].runtime);
    for (const trace::Device& device : topology->devices) {
      if (device.place != p) continue;
      print("  {:<16} {:<8} {:<4} mtu {}{}\n", device.name,
            device.loopback       ? "loopback"
            : device.kind.empty() ? "-"
                                  : device.kind,
            device.up ? "up" : "down", device.mtu, joined_to(*topology, device));
    }
  }
  return 0;
}

// -- run ----------------------------------------------------------------------------------------

/// Takes other rules when the file changes; what is wrong in it is told, and the old rules stay.
class RulesFile {
 public:
  explicit RulesFile(std::string path) : path_(std::move(path)), seen_(stamp()) {}
  void follow(trace::Tracer& tracer) {
    const auto now = stamp();
    if (now == seen_) return;
    seen_ = now;
    const auto rules = trace::read_rules(path_);
    const auto taken =
        rules ? tracer.change_rules(*rules) : Result<void>(tl::unexpected<Error>(rules.error()));
    say(taken ? "the rules have changed: the new ones are in force"
              : "the old rules stay in force: " + taken.error().message);
  }

 private:
  [[nodiscard]] std::filesystem::file_time_type stamp() const {
    std::error_code ignored;
    return std::filesystem::last_write_time(path_, ignored);
  }
  std::string path_;
  std::filesystem::file_time_type seen_;
};

int run(const Flags& flags) {
  const std::string path = files::shipped_file("trace", flags.rules);
  RulesFile file(path);  // before it is read, so that no change is missed
  const auto rules = trace::read_rules(path);
  if (!rules) return tell(rules.error());
  const daemon::Ending ending("greynic trace");
  TraceOutlets outlets;
  if (const auto done = outlets.open(flags.outlets); !done) return tell(done.error());
  auto tracer = trace::Tracer::start(
      *rules, [&outlets](const trace::JourneyEvent& event) { outlets.add(event); });
  if (!tracer) return tell(tracer.error());
  const auto over = [&](Clock::time_point begin) {
    return flags.duration ? Clock::now() - begin >= *flags.duration : (*tracer)->window_over();
  };
  say(flags.duration || rules->window.length ? "tracing" : "tracing until Ctrl-C");
  const auto begin = Clock::now();
  auto reported = begin;
  while (!ending.asked() && !over(begin)) {
    if (const auto done = (*tracer)->tend(kTend); !done) return tell(done.error());
    file.follow(**tracer);
    if (!outlets.wanted() || Clock::now() - reported < kReport) continue;
    reported = Clock::now();
    auto now = (*tracer)->report();
    if (!now) return tell(now.error());
    outlets.take(std::move(*now));
  }
  (*tracer)->stop();
  const auto report = (*tracer)->report();
  if (!report) return tell(report.error());
  put(flags.measures ? trace::measures_line(*report)
      : flags.json   ? trace::json_lines(*report)
                     : trace::table_text(*report));
  flush_output();
  outlets.take(*report);
  const auto written = outlets.finish(ending.asked());
  return written ? 0 : tell(written.error());
}

}  // namespace

void add_trace(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.command(
      "trace", "Where packets between containers lose their time, hop by hop",
      "  greynic trace topology                     # namespaces, containers, devices\n"
      "  greynic trace run vxlan --for 30s          # rules of a template\n"
      "  greynic trace run RULES.json --for 30s --json\n"
      "  greynic trace collect HOSTS.json RULES.json  # several hosts, by `greynic trace agent` on "
      "each\n"
      "  greynic trace hooks                        # what this kernel offers");
  command.needs_command();
  Command hooks =
      command.command("hooks", "Which hooks this kernel offers, which are used, and why");
  hooks.flag("--json", flags->json, "JSON on stdout");
  hooks.run([flags] { return show_hooks(*flags); });

  Command topology = command.command("topology", "Containers, devices and how they are joined");
  topology.flag("--json", flags->json, "JSON on stdout");
  topology.run([flags] { return show_topology(*flags); });

  Command traced = command.command(
      "run",
      "Trace this host: hops, delays, losses. What an RNIC forwards by itself never passes here; "
      "use `greynic run` and its counters for that");
  traced.option("rules", flags->rules, "Rules file, or the name of a template").required();
  traced.option("--for", flags->duration,
                "How long; else until the rules' window is over, or Ctrl-C");
  add_trace_outlets(traced, flags->outlets);
  traced.flag("--json", flags->json, "One JSON object a flow and hop, and a summary last");
  traced.flag(
      "--measures", flags->measures,
      "One JSON object with delays and losses of all hops as measures of a campaign, for the "
      "answer of an exec: target");
  traced.run([flags] { return run(*flags); });
  add_trace_hosts(command);
}

}  // namespace greynic::cli
