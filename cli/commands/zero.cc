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
#include "greynic/files/shipped.h"
#include "greynic/monitor/agent.h"
#include "greynic/monitor/collector.h"
#include "greynic/monitor/publish.h"
#include "greynic/series/query.h"
#ifdef GREYNIC_WITH_HTTP
#include "greynic/http/influx_sender.h"
#include "greynic/http/server.h"
#endif

namespace greynic::cli {
namespace {

struct ZeroAgentFlags {
  monitor::AgentOptions options;
  std::uint64_t mebibytes_of_user = 256;
};

int serve_zero_agent(ZeroAgentFlags flags) {
  // Before any other thread, which would take the signals.
  const daemon::Ending ending("greynic zero agent");
  daemon::Log log("greynic zero agent");
  flags.options.bytes_of_user = flags.mebibytes_of_user << 20;
  flags.options.tell = [&log](std::string_view line) { log.line(line); };
  auto agent = monitor::Agent::start(flags.options);
  if (!agent) return tell(agent.error());
  print("{}\n", flags.options.socket);
  flush_output();
  (*agent)->serve(ending.asked());
  return 0;
}

struct ZeroCollectFlags {
  std::string hosts;
  monitor::CollectorOptions options;
  std::optional<std::chrono::nanoseconds> duration;
  std::chrono::nanoseconds lease = std::chrono::seconds(3);
  std::chrono::nanoseconds keep{0}, keep_tiers{0};
  bool standby = false;
  std::string open_metrics, influx;
};

/// Gives what a collector reads to others while it runs.
class ZeroOutlets {
 public:
  ZeroOutlets() = default;
  ~ZeroOutlets() { end(); }
  ZeroOutlets(const ZeroOutlets&) = delete;
  ZeroOutlets& operator=(const ZeroOutlets&) = delete;

#ifdef GREYNIC_WITH_HTTP
  Result<void> begin(const ZeroCollectFlags& flags, const monitor::Collector& collector) {
    if (!flags.open_metrics.empty()) {
      auto server = http::Server::open(flags.open_metrics);
      if (!server) return pass_on(server);
      server_ = std::move(*server);
      server_->metrics("/metrics", [&collector] { return monitor::open_metrics_of(collector); });
      server_->start();
      say(fmt::format("metrics at http://{}/metrics", server_->address()));
    }
    if (!flags.influx.empty()) {
      auto sender = http::InfluxSender::open(flags.influx);
      if (!sender) return pass_on(sender);
      sender_ = std::move(*sender);
      sending_ = std::thread([this, &collector] { send(collector); });
    }
    return {};
  }
  void end() {
    over_ = true;
    if (sending_.joinable()) sending_.join();
    if (sender_) {
      sender_->flush(std::chrono::seconds(2));
      const auto counts = sender_->counts();
      say(fmt::format("InfluxDB took {} lines; {} lost, {} not sent{}{}", counts.sent, counts.lost,
                      counts.waiting, counts.last_failure.empty() ? "" : ": ",
                      counts.last_failure));
      sender_.reset();
    }
    server_.reset();
  }

 private:
  void send(const monitor::Collector& collector) {
    constexpr int kTurns = 10;  // of 100 ms: the lines of a second
    for (int turn = 1; !over_; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (turn % kTurns == 0) sender_->send(monitor::influx_lines_of(collector));
    }
    sender_->send(monitor::influx_lines_of(collector));
  }

  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::InfluxSender> sender_;
  std::thread sending_;
  std::atomic<bool> over_{false};
#else
  Result<void> begin(const ZeroCollectFlags&, const monitor::Collector&) { return {}; }
  void end() {}
#endif
};

int collect(ZeroCollectFlags flags) {
  const daemon::Ending ending("greynic zero collect");
  daemon::Log log("greynic zero collect");
  auto hosts = monitor::read_hosts(files::shipped_file("examples", flags.hosts));
  if (!hosts) return tell(hosts.error());
  auto& store = flags.options.store_options;
  store.lease = std::chrono::duration_cast<std::chrono::milliseconds>(flags.lease);
  store.keep_raw = std::chrono::duration_cast<std::chrono::seconds>(flags.keep);
  store.keep_tiers = std::chrono::duration_cast<std::chrono::seconds>(flags.keep_tiers);
  if (store.lease < std::chrono::milliseconds(100)) {
    return tell({ErrorCode::kBadInput, "--lease: at least 100ms"});
  }
  flags.options.commit = std::min(flags.options.commit, store.lease / 3);
  flags.options.tell = [&log](std::string_view line) { log.line(line); };
  if (flags.standby) {
    const auto mine = series::wait_for_lease(flags.options.store, store.lease,
                                             [&] { return ending.asked().load(); });
    if (!mine) return tell(mine.error());
    if (!*mine) return 0;
  }
  auto collector = monitor::Collector::open(std::move(*hosts), flags.options);
  if (!collector) return tell(collector.error());
  ZeroOutlets outlets;
  if (auto begun = outlets.begin(flags, **collector); !begun) return tell(begun.error());
  const auto done = (*collector)->run(ending.asked(), flags.duration);
  outlets.end();
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

void add_zero_agent(Command& zero) {
  auto flags = std::make_shared<ZeroAgentFlags>();
  Command agent = zero.command("agent",
                               "Take the metrics of this host's programs, and show them "
                               "to collectors");
  agent.option("--socket", flags->options.socket, "Where programs and collectors come");
  agent.option("--quota", flags->mebibytes_of_user, "MiB of metrics that one user may have");
  agent.run([flags] { return serve_zero_agent(*flags); });
}

void add_zero_collect(Command& zero) {
  auto flags = std::make_shared<ZeroCollectFlags>();
  Command command = zero.command("collect", "Read many hosts into a store");
  command.option("HOSTS", flags->hosts, "Which hosts (docs/formats/zero_hosts.md)").required();
  command.option("--store", flags->options.store, "Directory of the store").required();
  command.option("--for", flags->duration, "Stop after this time, else by a signal");
  command.flag("--standby", flags->standby,
               "Wait while another collector writes the store, and take over when it has gone");
  command.option("--lease", flags->lease, "A collector that says nothing for so long has gone");
  command.option("--keep", flags->keep, "Remove samples that are older; 0s: never");
  command.option("--keep-tiers", flags->keep_tiers, "Remove means that are older; 0s: never");
#ifdef GREYNIC_WITH_HTTP
  command.option("--openmetrics", flags->open_metrics,
                 "Serve the last values to Prometheus: :PORT of loopback, or ADDRESS:PORT");
  command.option("--influx", flags->influx,
                 "Send the last values each second: http://HOST:8086/DATABASE");
#endif
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
  Command zero =
      program.command("zero", "Monitor programs that do nothing for it: agent, collector, store",
                      "  greynic zero agent --socket /run/greynic/zero.sock &\n"
                      "  greynic zero collect hosts.json --store /var/lib/greynic/store --for 10s\n"
                      "  greynic zero show /var/lib/greynic/store --metric 'server_*'");
  zero.needs_command();
  add_zero_agent(zero);
  add_zero_collect(zero);
  add_zero_show(zero);
}

}  // namespace greynic::cli
