#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "greynic/core/units.h"
#include "greynic/daemon/ending.h"
#include "greynic/daemon/log.h"
#include "greynic/files/json_file.h"
#include "greynic/files/output_file.h"
#include "greynic/files/shipped.h"
#include "greynic/monitor/agent.h"
#include "greynic/monitor/collector.h"
#include "greynic/series/query.h"
#include "outlets/zero_outlets.h"
#ifdef GREYNIC_WITH_RNIC
#include "greynic/rnic/sampler.h"
#include "greynic_zero.h"
#endif
#ifdef GREYNIC_WITH_REMOTE
#include "greynic/remote/remote.h"
#endif

namespace greynic::cli {
namespace {

struct ZeroAgentFlags {
  monitor::AgentOptions options;
  std::uint64_t mebibytes_of_user = 256;
  std::string listen, certificates, device;
  std::vector<std::string> allowed;
};

#ifdef GREYNIC_WITH_REMOTE
/// Opens the door to other hosts, if one is asked for.
Result<std::unique_ptr<remote::Door>> open_remote_door(const ZeroAgentFlags& flags,
                                                       const monitor::Agent& agent) {
  if (flags.listen.empty()) {
    if (flags.certificates.empty() && flags.allowed.empty() && flags.device.empty()) return nullptr;
    return fail(ErrorCode::kBadInput,
                "--certificates, --allow and --device go with --listen ADDRESS:PORT");
  }
  remote::DoorOptions options;
  options.socket = flags.options.socket;
  options.listen = flags.listen;
  options.certificates = flags.certificates;
  options.device = flags.device;
  options.directory = agent.directory();
  options.tell = flags.options.tell;
  for (const std::string& one : flags.allowed) {
    if (auto done = remote::allow(one, options.allowed); !done) return pass_on(done);
  }
  if (flags.certificates.empty() && !flags.allowed.empty()) {
    return fail(ErrorCode::kBadInput,
                "--allow names clients by their certificates: give "
                "--certificates DIR (`greynic agent init` makes it)");
  }
  auto door = remote::Door::open(options);
  if (door && flags.certificates.empty()) {
    say("no certificates: listening on loopback only, for whoever may use this machine");
  }
  if (door) say(fmt::format("collectors come to {}", (*door)->address()));
  return door;
}
#endif

int serve_zero_agent(ZeroAgentFlags flags) {
  // Before any other thread, which would take the signals.
  const daemon::Ending ending("greynic zero agent");
  daemon::Log log("greynic zero agent");
  flags.options.bytes_of_user = flags.mebibytes_of_user << 20;
  flags.options.tell = [&log](std::string_view line) { log.line(line); };
  auto agent = ending.at_once_during([&] { return monitor::Agent::start(flags.options); });
  if (!agent) return tell(agent.error());
#ifdef GREYNIC_WITH_REMOTE
  const auto door = open_remote_door(flags, **agent);
  if (!door) return tell(door.error());
#endif
  print("{}\n", flags.options.socket);
  flush_output();
  (*agent)->serve(ending.asked());
  return 0;
}

struct ZeroCollectFlags {
  std::string hosts;
  monitor::CollectorOptions options;
  std::uint64_t queue_pairs = 256;
  std::chrono::nanoseconds patience = std::chrono::milliseconds(250);
  std::optional<std::chrono::nanoseconds> duration;
  std::chrono::nanoseconds lease = std::chrono::seconds(3);
  std::chrono::nanoseconds keep{0}, keep_tiers{0};
  bool standby = false;
  ZeroOutletFlags outlets;
};

int collect(ZeroCollectFlags flags) {
  const daemon::Ending ending("greynic zero collect");
  daemon::Log log("greynic zero collect");
  auto hosts = monitor::read_hosts(files::shipped_file("examples", flags.hosts));
  if (!hosts) return tell(hosts.error());
  std::vector<std::string> regions;
  for (const monitor::HostSpec& host : *hosts) regions.push_back(host.region);
  if (auto good = files::not_an_input(flags.outlets.json_lines, regions); !good) {
    return tell(good.error());
  }
  auto& store = flags.options.store_options;
  store.lease = std::chrono::duration_cast<std::chrono::milliseconds>(flags.lease);
  store.keep_raw = std::chrono::duration_cast<std::chrono::seconds>(flags.keep);
  store.keep_tiers = std::chrono::duration_cast<std::chrono::seconds>(flags.keep_tiers);
  if (store.lease < std::chrono::milliseconds(100)) {
    return tell({ErrorCode::kBadInput, "--lease: at least 100ms"});
  }
  flags.options.commit = std::min(flags.options.commit, store.lease / 3);
  flags.options.tell = [&log](std::string_view line) { log.line(line); };
#ifdef GREYNIC_WITH_REMOTE
  auto links = remote::links_to(*hosts, {flags.queue_pairs, flags.patience});
  if (!links) return tell(links.error());
  flags.options.remote_links = std::move(*links);
#endif
  if (flags.options.store.empty() && flags.standby) {
    return tell({ErrorCode::kBadInput, "--standby waits for a store: name it with --store"});
  }
  if (flags.standby) {
    const auto mine = series::wait_for_lease(flags.options.store, store.lease,
                                             [&] { return ending.asked().load(); });
    if (!mine) return tell(mine.error());
    if (!*mine) return 0;
  }
  Result<std::unique_ptr<monitor::Collector>> collector = nullptr;
  ZeroOutlets outlets;  // after the collector, to end before it
  if (auto begun = outlets.prepare(flags.outlets, flags.options); !begun) {
    return tell(begun.error());
  }
  collector = monitor::Collector::open(std::move(*hosts), flags.options);
  if (!collector) return tell(collector.error());
  if (auto begun = outlets.begin(flags.outlets, **collector); !begun) return tell(begun.error());
  auto done = (*collector)->run(ending.asked(), flags.duration);
  if (auto sent = outlets.end(&ending.asked()); done) done = sent;
  const auto counts = (*collector)->counts();
  say(fmt::format("{} samples read in {} looks, {} stored, {} lost; {} looks late, {} gaps",
                  counts.samples, counts.looks, counts.acknowledged, counts.lost, counts.late_looks,
                  counts.gaps));
  for (const auto& host : (*collector)->hosts()) {
    if (!host.up) say(fmt::format("{}: not read: {}", host.name, host.reason));
  }
  return done ? 0 : tell(done.error());
}

struct ZeroShowFlags {
  std::string store;
  series::Query query;
  std::string step = "raw";
  std::optional<std::chrono::nanoseconds> since;
  bool samples = false, gaps = false, json = false;
};

std::string with_labels(const std::string& name, const std::string& labels) {
  return labels.empty() ? name : fmt::format("{}{{{}}}", name, labels);
}

int show_gaps(const ZeroShowFlags& flags) {
  const auto gaps = series::gaps_of(flags.store, flags.query);
  if (!gaps) return tell(gaps.error());
  for (const series::Gap& gap : *gaps) {
    if (flags.json) {
      const nlohmann::json line = {{"host", gap.host},
                                   {"begin_ns", gap.begin_ns},
                                   {"end_ns", gap.end_ns},
                                   {"reason", gap.reason}};
      print("{}\n", files::json_text(line));
    } else {
      print("{:<24} {:>12.3f} s from {}  {}\n", gap.host,
            static_cast<double>(gap.end_ns - gap.begin_ns) * 1e-9, gap.begin_ns, gap.reason);
    }
  }
  return 0;
}

int show_samples(const ZeroShowFlags& flags) {
  const auto done = series::visit_points(flags.store, flags.query, [&](const series::Point& point) {
    std::string labels = point.field->labels;
    if (point.field->count > 1) {
      labels += fmt::format("{}index=\"{}\"", labels.empty() ? "" : ",", point.index);
    }
    const std::string last = series::text_of(*point.field, point.value);
    if (flags.json) {
      nlohmann::json line = {{"host", point.group->host},
                             {"name", point.field->name},
                             {"labels", labels},
                             {"time_ns", point.time_ns}};
      line[flags.query.step_ns == 0 ? "value" : "last"] =
          series::value_of(*point.field, point.value);
      if (flags.query.step_ns != 0) {
        line["count"] = point.count;
        line["least"] = point.least;
        line["greatest"] = point.greatest;
        line["mean"] = point.mean;
      }
      print("{}\n", files::json_text(line));
    } else if (flags.query.step_ns == 0) {
      print("{} {} {} {}\n", point.time_ns, point.group->host,
            with_labels(point.field->name, labels), last);
    } else {
      print("{} {} {} count {} least {} mean {} greatest {} last {}\n", point.time_ns,
            point.group->host, with_labels(point.field->name, labels), point.count,
            number_to_string(point.least), number_to_string(point.mean),
            number_to_string(point.greatest), last);
    }
  });
  return done ? 0 : tell(done.error());
}

int show_series(const ZeroShowFlags& flags) {
  const auto found = series::summarize(flags.store, flags.query);
  if (!found) return tell(found.error());
  if (!flags.json) {
    print("{:<16} {:<44} {:>9} {:>20} {:>14} {:>14} {}\n", "host", "series", "samples", "last",
          "least", "greatest", "unit");
  }
  for (const series::Summary& one : *found) {
    const bool is_histogram = one.kind == 3;
    if (flags.json) {
      nlohmann::json line = {{"host", one.host},         {"source", one.source},
                             {"name", one.name},         {"labels", one.labels},
                             {"unit", one.unit},         {"samples", one.samples},
                             {"first_ns", one.first_ns}, {"last_ns", one.last_ns}};
      line[is_histogram ? "sum" : "last"] = nlohmann::json::parse(one.last, nullptr, false);
      line[is_histogram ? "p50" : "least"] = one.least;
      line[is_histogram ? "p99" : "greatest"] = one.greatest;
      if (is_histogram) line["count"] = one.count;
      print("{}\n", files::json_text(line));
      continue;
    }
    print("{:<16} {:<44} {:>9} {:>20} {:>14} {:>14} {}\n", one.host,
          with_labels(one.name, one.labels), one.samples,
          is_histogram ? fmt::format("n={}", one.count) : one.last,
          (is_histogram ? "p50=" : "") + number_to_string(one.least),
          (is_histogram ? "p99=" : "") + number_to_string(one.greatest), one.unit);
  }
  return 0;
}

int show_store(ZeroShowFlags flags) {
  if (flags.step == "10s") flags.query.step_ns = series::kTierSteps[0];
  if (flags.step == "10m") flags.query.step_ns = series::kTierSteps[1];
  if (flags.since) {
    flags.query.begin_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count() -
                           flags.since->count();
  }
  if (flags.gaps) return show_gaps(flags);
  return flags.samples || flags.query.step_ns != 0 ? show_samples(flags) : show_series(flags);
}

#ifdef GREYNIC_WITH_RNIC
struct ZeroRnicFlags {
  rnic::SamplerOptions options;
  std::string select, socket;
  std::chrono::nanoseconds every = std::chrono::milliseconds(100);
  std::chrono::nanoseconds qps_every = std::chrono::seconds(1);
  std::optional<std::chrono::nanoseconds> duration;
  bool list = false;
};

int sample_rnics(ZeroRnicFlags flags) {
  using Clock = std::chrono::steady_clock;
  const daemon::Ending ending("greynic zero rnic");
  if (!flags.select.empty()) {
    auto selection = rnic::Selection::read(flags.select);
    if (!selection) return tell(selection.error());
    flags.options.selection = std::move(*selection);
  }
  if (flags.every < std::chrono::milliseconds(1) || flags.qps_every < flags.every) {
    return tell({ErrorCode::kBadInput,
                 "--every is at least 1ms, and --qps-every at least as long as --every"});
  }
  auto sampler = rnic::Sampler::open(flags.options);
  if (!sampler) return tell(sampler.error());
  if (flags.list) {
    for (const std::string& name : sampler->names()) print("{}\n", name);
    return 0;
  }
  if (::zero_connect(flags.socket.empty() ? nullptr : flags.socket.c_str()) != 0) {
    return tell({ErrorCode::kIo, fmt::format("the agent is not reached: {}", ::zero_error())});
  }
  say(fmt::format("{} counters and queue pairs are published", sampler->names().size()));
  const auto begin = Clock::now();
  auto next = begin, next_qps = begin;
  while (!ending.asked() && (!flags.duration || Clock::now() < begin + *flags.duration)) {
    sampler->sample_ports();
    if (Clock::now() >= next_qps) {
      sampler->sample_qps();
      next_qps = Clock::now() + flags.qps_every;
    }
    // Samples that were missed are not made up for.
    next = std::max(next + flags.every, Clock::now());
    while (!ending.asked() && Clock::now() < next) {
      std::this_thread::sleep_until(std::min(next, Clock::now() + std::chrono::milliseconds(100)));
    }
  }
  return 0;
}

void add_zero_rnic(Command& zero) {
  auto flags = std::make_shared<ZeroRnicFlags>();
  Command rnic = zero.command("rnic", "Publish the counters of this host's RNICs as metrics");
  rnic.option("--device", flags->options.device, "Devices, as a pattern of the shell");
  rnic.option("--select", flags->select, "Which counters (docs/formats/rnic_counters.md)");
  rnic.option("--every", flags->every, "Time between two samples of the ports");
  rnic.option("--qps-every", flags->qps_every, "Time between two looks at the queue pairs");
  rnic.option("--socket", flags->socket, "Socket of the agent");
  rnic.option("--for", flags->duration, "Stop after this time, else by a signal");
  rnic.flag("--list", flags->list, "Print which counters are selected, and stop");
  rnic.run([flags] { return sample_rnics(*flags); });
}
#endif

void add_zero_agent(Command& zero) {
  auto flags = std::make_shared<ZeroAgentFlags>();
  Command agent = zero.command("agent",
                               "Take the metrics of this host's programs, and show them "
                               "to collectors");
  agent.option("--socket", flags->options.socket, "Where programs and collectors come");
#ifdef GREYNIC_WITH_REMOTE
  agent.option("--listen", flags->listen,
               "ADDRESS:PORT for collectors of other hosts; port 0 takes a free one");
  agent.option("--certificates", flags->certificates,
               "Directory made by `greynic agent init`; without it only loopback is listened at");
  agent.option("--device", flags->device,
               "RDMA device that collectors READ through, around this process");
  agent.option("--allow", flags->allowed,
               "NAME=CLASS,... what a client of that name may see: system, persistent, tidal; give "
               "it once for each. Without any, each client of the lab sees all");
#endif
  agent.option("--quota", flags->mebibytes_of_user, "MiB of metrics that one user may have")
      .range(1, 1 << 20);
  agent.run([flags] { return serve_zero_agent(*flags); });
}

void add_zero_collect(Command& zero) {
  auto flags = std::make_shared<ZeroCollectFlags>();
  Command command = zero.command("collect", "Read many hosts into a store");
  command.option("HOSTS", flags->hosts, "Which hosts (docs/formats/zero_hosts.md)").required();
  command.option("--store", flags->options.store,
                 "Directory of the store; without it samples are only shown and sent");
  command.option("--for", flags->duration, "Stop after this time, else by a signal");
  command.flag("--standby", flags->standby,
               "Wait while another collector writes the store, and take over when it has gone");
  command.option("--lease", flags->lease, "A collector that says nothing for so long has gone");
#ifdef GREYNIC_WITH_REMOTE
  command
      .option("--queue-pairs", flags->queue_pairs,
              "Queue pairs of an RDMA device that its hosts share; more hosts take turns")
      .range(1, 1 << 20);
  command.option("--patience", flags->patience,
                 "Wait at least so long for an answer of another host");
#endif
  command.flag("--realtime", flags->options.realtime,
               "Look before all usual programs run: samples come in time on a busy host");
  command.option("--keep", flags->keep, "Remove samples that are older; 0s: never");
  command.option("--keep-tiers", flags->keep_tiers, "Remove means that are older; 0s: never");
  add_zero_outlets(command, flags->outlets);
  command.run([flags] { return collect(*flags); });
}

void add_zero_show(Command& zero) {
  auto flags = std::make_shared<ZeroShowFlags>();
  Command show = zero.command("show", "Print what a store holds");
  show.option("STORE", flags->store, "Directory of the store").required();
  show.option("--host", flags->query.host, "Hosts, as a pattern of the shell");
  show.option("--metric", flags->query.metric, "Series by name, as a pattern of the shell");
  show.option("--since", flags->since, "Only this last time");
  show.option("--step", flags->step, "Samples as they are, or what was made of them")
      .choices({"raw", "10s", "10m"});
  show.flag("--samples", flags->samples, "Each sample, a line each; else a line for each series");
  show.flag("--gaps", flags->gaps, "When hosts were not read, and why");
  show.flag("--json", flags->json, "A JSON object a line");
  show.run([flags] { return show_store(*flags); });
}

}  // namespace

void add_zero(Program& program) {
  Command zero = program.command(
      "zero", "Monitor programs that do nothing for it: agent, collector, store",
      "  greynic zero agent --socket /run/greynic/zero.sock &\n"
      "  greynic zero collect hosts.json --store /var/lib/greynic/store --for 10s\n"
      "  greynic zero collect hosts.json --json-lines - | jq 'select(.value > 100)'\n"
      "  greynic zero show /var/lib/greynic/store --metric 'server_*'");
  zero.needs_command();
  add_zero_agent(zero);
  add_zero_collect(zero);
  add_zero_show(zero);
#ifdef GREYNIC_WITH_RNIC
  add_zero_rnic(zero);
#endif
}

}  // namespace greynic::cli
