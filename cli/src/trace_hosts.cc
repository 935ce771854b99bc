#include "trace_hosts.h"

#ifdef GREYNIC_WITH_TRACE_HOSTS

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "greynic/daemon/ending.h"
#include "greynic/daemon/log.h"
#include "greynic/files/json_file.h"
#include "greynic/files/shipped.h"
#include "greynic/trace_hosts/agent.h"
#include "greynic/trace_hosts/collector.h"
#include "outlets/trace_outlets.h"
#include "progress.h"

namespace greynic::cli {
namespace {

constexpr std::chrono::milliseconds kGlance{50};
constexpr std::chrono::seconds kTurn{1};
constexpr int kLastTurns = 4;  // until the last packets have arrived and are told of
constexpr std::chrono::seconds kLastTurnsWithin{20};
constexpr std::chrono::seconds kEndWithin{60};  // with hosts that are away

struct TraceHostsFlags {
  trace_hosts::AgentOptions agent;
  std::string hosts, rules;
  std::optional<std::chrono::nanoseconds> duration;
  TraceOutletFlags outlets;
  bool json = false;
};

int serve_trace(TraceHostsFlags flags) {
  // Before any other thread, which would take the signals.
  const daemon::Ending ending("greynic trace agent");
  daemon::Log log("greynic trace agent");
  flags.agent.tell = [&log](std::string_view line) { log.line(line); };
  auto agent = ending.at_once_during([&] { return trace_hosts::Agent::start(flags.agent); });
  if (!agent) return cli::tell(agent.error());
  if (flags.agent.certificates.empty()) {
    say("no certificates: listening on loopback only, for whoever may use this machine");
  }
  print("{}\n", (*agent)->address());
  flush_output();
  std::string told;
  while (!ending.asked()) {
    std::this_thread::sleep_for(kGlance);
    const std::string failure = (*agent)->failure();
    if (failure != told) log.line(told = failure);
  }
  agent->reset();
  return 0;
}

int collect_trace(const TraceHostsFlags& flags) {
  const auto hosts = trace_hosts::read_hosts(flags.hosts);
  if (!hosts) return cli::tell(hosts.error());
  const std::string path = files::shipped_file("trace", flags.rules);
  const auto text = files::read_text(path);
  if (!text) return cli::tell(text.error());
  const daemon::Ending ending("greynic trace", kEndWithin);
  TraceOutlets outlets;
  if (const auto done = outlets.open(flags.outlets); !done) return cli::tell(done.error());
  auto collector = trace_hosts::Collector::start(
      *hosts, *text, path, [](std::string_view line) { say(std::string(line)); },
      [&outlets](const trace::JourneyEvent& event) { outlets.add(event); });
  if (!collector) return cli::tell(collector.error());
  say(flags.duration ? "tracing" : "tracing until Ctrl-C");
  const auto begin = std::chrono::steady_clock::now();
  auto next = begin;
  const auto ended = [&] {
    return ending.asked() ||
           (flags.duration && std::chrono::steady_clock::now() - begin >= *flags.duration);
  };
  while (!ended()) {
    std::this_thread::sleep_for(kGlance);
    if (std::chrono::steady_clock::now() < next) continue;
    next += kTurn;
    (*collector)->turn();
    if (outlets.wanted()) outlets.take((*collector)->report());
  }
  const auto end = std::chrono::steady_clock::now();
  for (int i = 0; i < kLastTurns && std::chrono::steady_clock::now() - end < kLastTurnsWithin;
       ++i) {
    if (i > 0) std::this_thread::sleep_for(kTurn);
    (*collector)->turn();
  }
  const trace::Report report = (*collector)->report();
  put(flags.json ? trace::json_lines(report) : trace::table_text(report));
  flush_output();
  outlets.take(report);
  const auto done = outlets.finish(ending.asked());
  return done ? 0 : cli::tell(done.error());
}

}  // namespace

void add_trace_hosts(Command& trace) {
  auto flags = std::make_shared<TraceHostsFlags>();
  Command agent = trace.command(
      "agent", "Trace this host for a collector on another; nothing is attached until it asks");
  agent.option("--listen", flags->agent.listen, "ADDRESS:PORT; port 0 takes a free one");
  agent.option("--certificates", flags->agent.certificates,
               "Directory made by `greynic agent init`");
  agent.option(
      "--place", flags->agent.places,
      "Look at this place alone, as `greynic trace topology` names it; '*' is any text; give "
      "it once for each");
  agent.run([flags] { return serve_trace(*flags); });

  Command collect = trace.command("collect", "Trace several hosts as one, by their agents");
  collect.option("hosts", flags->hosts, "Hosts file").required();
  collect.option("rules", flags->rules, "Rules file, or the name of a template").required();
  collect.option("--for", flags->duration, "How long; until Ctrl-C when it is not given");
  add_trace_outlets(collect, flags->outlets);
  collect.flag("--json", flags->json, "One JSON object a flow and hop, and a summary last");
  collect.run([flags] { return collect_trace(*flags); });
}

}  // namespace greynic::cli

#else

namespace greynic::cli {

void add_trace_hosts(Command&) {}

}  // namespace greynic::cli

#endif
