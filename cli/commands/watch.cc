#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "greynic/core/units.h"
#include "greynic/daemon/ending.h"
#include "greynic/files/json_file.h"
#include "greynic/monitor/collector.h"
#include "greynic/monitor/snapshot.h"
#include "greynic/zero/reader.h"
#include "outlets/doors.h"
#ifdef GREYNIC_WITH_REMOTE
#include "greynic/remote/remote.h"
#endif

namespace greynic::cli {
namespace {

struct WatchFlags {
  std::string what;
  std::chrono::nanoseconds every = std::chrono::seconds(1);
  std::optional<std::chrono::nanoseconds> wait;
  std::optional<std::uint64_t> count;
  monitor::SnapshotFilter filter;
  std::string serve;
  bool json = false;
};

void show(const zero::Reading& reading, bool as_json) {
  const zero::Row& row = *reading.row;
  nlohmann::json metrics = nlohmann::json::object();
  std::int64_t time_ns = 0;
  if (!as_json)
    print("{}{}{}{}", row.schema->name, row.labels.empty() ? "" : "{", row.labels,
          row.labels.empty() ? "" : "}");
  std::string lines;
  for (const zero::Field& field : row.schema->fields) {
    if (field.name == "time_ns") {
      time_ns = static_cast<std::int64_t>(zero::bits_of(field, reading.bytes));
      continue;
    }
    if (field.kind == ZERO_HISTOGRAM) continue;
    for (std::uint32_t i = 0; i < field.count; ++i) {
      const std::string name = field.count == 1 ? field.name : fmt::format("{}[{}]", field.name, i);
      const double value = zero::number_of(field, reading.bytes, i);
      metrics[name] = value;
      lines += fmt::format("  {:<40} {:>20} {}\n", name, number_to_string(value), field.unit);
    }
  }
  if (!as_json) {
    print(" at {} ns (write {})\n{}", time_ns, reading.version / 2, lines);
    return;
  }
  nlohmann::json document = {{"group", row.schema->name},
                             {"version", reading.version},
                             {"time_ns", time_ns},
                             {"metrics", std::move(metrics)}};
  if (!row.labels.empty()) document["labels"] = row.labels;
  print("{}\n", files::json_text(document));
}

Result<zero::ArenaReader> open_region(const std::string& path) {
  auto source = zero::map_region(path);
  if (!source) return pass_on(source);
  auto reader = zero::ArenaReader::open(std::move(*source));
  if (!reader) return reader.error().while_doing(path);
  return reader;
}

/// The region, once its target has made it: when its first measurement begins. Until then a file of
/// an older run may be there.
Result<zero::ArenaReader> reader_of(const WatchFlags& flags) {
  constexpr std::chrono::milliseconds kLook{20};
  const auto until =
      std::chrono::steady_clock::now() + flags.wait.value_or(std::chrono::nanoseconds(0));
  auto reader = open_region(flags.what);
  while (!reader && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLook);
    reader = open_region(flags.what);
  }
  return reader;
}

int watch_region(const WatchFlags& flags) {
  auto reader = reader_of(flags);
  if (!reader) return tell(reader.error());
  for (std::uint64_t round = 0; round < flags.count.value_or(1); ++round) {
    if (round > 0) std::this_thread::sleep_for(flags.every);
    const auto readings = reader->look();
    if (!readings) return tell(readings.error());
    for (const zero::Reading& reading : *readings) show(reading, flags.json);
    flush_output();
  }
  return 0;
}

/// Values of the last frame, by series: a counter is shown with its rate.
using Before = std::map<std::string, std::pair<double, std::int64_t>>;

/// Per second since the last frame; empty when nobody can tell.
std::string rate_of(const monitor::ShownSeries& one, const Before& before) {
  const auto found = before.find(one.id());
  if (one.kind == ZERO_GAUGE || found == before.end()) return "";
  const auto& [value, time_ns] = found->second;
  if (one.value < value || one.time_ns <= time_ns) return "";
  const double rate = (one.value - value) / static_cast<double>(one.time_ns - time_ns) * 1e9;
  return fmt::format("{:.4g}/s", rate);
}

std::string text_of(const monitor::ShownSeries& one) {
  return one.kind == ZERO_HISTOGRAM ? fmt::format("p50 {:.4g}, p99 {:.4g}", one.p50, one.p99)
                                    : number_to_string(one.value);
}

void show_frame(const monitor::Collector& collector, const WatchFlags& flags, bool on_terminal,
                Before& before) {
  const auto snapshot = monitor::snapshot_of(collector, flags.filter);
  const auto hosts = collector.hosts();
  const auto up = std::count_if(hosts.begin(), hosts.end(), [](const auto& h) { return h.up; });
  // One write a frame, from the top left corner: a terminal does not flicker.
  std::string frame = on_terminal ? "\x1b[H\x1b[2J" : "";
  frame += fmt::format("{} of {} hosts are read, {} samples so far\n", up, hosts.size(),
                       collector.counts().samples);
  for (const auto& host : hosts) {
    if (!host.up) frame += fmt::format("{}: {}\n", host.name, host.reason);
  }
  frame +=
      fmt::format("{:<16} {:<46} {:>24} {:>12} {}\n", "host", "series", "value", "rate", "unit");
  for (const auto& one : snapshot.series) {
    const std::string name =
        one.labels.empty() ? one.name : fmt::format("{}{{{}}}", one.name, one.labels);
    frame += fmt::format("{:<16} {:<46} {:>24} {:>12} {}\n", one.host, name, text_of(one),
                         rate_of(one, before), one.unit);
    before[one.id()] = {one.value, one.time_ns};
  }
  if (snapshot.left_out > 0) {
    frame += fmt::format("and {} series more; --metric and --host choose\n", snapshot.left_out);
  }
  print("{}", frame);
  flush_output();
}

void print_lines(const monitor::Collector& collector, const WatchFlags& flags) {
  for (const auto& one : monitor::snapshot_of(collector, flags.filter).series) {
    nlohmann::json line = {
        {"host", one.host}, {"program", one.program}, {"name", one.name},  {"labels", one.labels},
        {"unit", one.unit}, {"time_ns", one.time_ns}, {"value", one.value}};
    if (one.kind == ZERO_HISTOGRAM) {
      line["p50"] = one.p50;
      line["p99"] = one.p99;
    }
    print("{}\n", files::json_text(line));
  }
  flush_output();
}

/// Hosts, live: a collector without a store reads them, and its last values are shown.
int watch_hosts(WatchFlags flags, std::vector<monitor::HostSpec> hosts) {
  const daemon::Ending ending("greynic watch");
  monitor::CollectorOptions options;
#ifdef GREYNIC_WITH_REMOTE
  auto links = remote::links_to(hosts);
  if (!links) return tell(links.error());
  options.remote_links = std::move(*links);
#endif
  auto collector = monitor::Collector::open(std::move(hosts), options);
  if (!collector) return tell(collector.error());
#ifdef GREYNIC_WITH_MONITOR_PAGE
  std::unique_ptr<http::Server> page;
  if (!flags.serve.empty()) {
    auto served = serve_hosts(flags.serve, **collector);
    if (!served) return tell(served.error());
    page = std::move(*served);
  }
#endif
  const bool on_terminal = !flags.json && ::isatty(STDOUT_FILENO) == 1;
  winsize window{};
  if (on_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 8) {
    flags.filter.most = std::min<std::size_t>(flags.filter.most, window.ws_row - 5);
  }
  const bool for_ever = on_terminal || !flags.serve.empty();
  const std::uint64_t frames = flags.count.value_or(for_ever ? UINT64_MAX : 1);
  std::atomic<bool> over{false};
  std::thread reading([&] { (void)(*collector)->run(over); });
  Before before;
  auto next = std::chrono::steady_clock::now();
  for (std::uint64_t frame = 0; frame < frames && !ending.asked(); ++frame) {
    next += flags.every;
    while (!ending.asked() && std::chrono::steady_clock::now() < next) {
      std::this_thread::sleep_until(
          std::min(next, std::chrono::steady_clock::now() + std::chrono::milliseconds(100)));
    }
    if (ending.asked()) break;
    if (!flags.serve.empty() && !on_terminal && !flags.json) continue;  // the page shows them
    if (flags.json) {
      print_lines(**collector, flags);
    } else {
      show_frame(**collector, flags, on_terminal, before);
    }
  }
  over = true;
  reading.join();
  return 0;
}

int watch(const WatchFlags& flags) {
  struct stat status {};
  if (flags.what.ends_with(".json")) {
    auto hosts = monitor::read_hosts(flags.what);
    if (!hosts) return tell(hosts.error());
    return watch_hosts(flags, std::move(*hosts));
  }
  if (::stat(flags.what.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    monitor::HostSpec host;
    host.name = "here";
    host.agent = flags.what;
    return watch_hosts(flags, {host});
  }
  if (!flags.serve.empty()) {
    return tell({ErrorCode::kBadInput,
                 "--serve shows hosts: name an agent's socket or a list of hosts (.json)"});
  }
  return watch_region(flags);
}

}  // namespace

void add_watch(Program& program) {
  auto flags = std::make_shared<WatchFlags>();
  Command command = program.command(
      "watch", "Look at metrics live: a shared region, this host's agent, or many hosts",
      "  greynic run mask_wall --target 'twin:cx6?counters=/dev/shm/cx6' -o run.db &\n"
      "  greynic watch /dev/shm/cx6 --wait 10s --every 100ms --count 50 --json\n"
      "  greynic watch /run/greynic/zero.sock --metric 'redis_*'\n"
      "  greynic watch hosts.json --every 2s\n"
      "  greynic watch hosts.json --serve :8080");
  command
      .option(
          "WHAT", flags->what,
          "Region file that a target publishes to, socket of an agent, or list of hosts (.json)")
      .required();
  command.option("--every", flags->every, "Time between two looks");
  command.option("--count", flags->count,
                 "How many times to look; else once, and hosts on a terminal for ever");
  command.option("--host", flags->filter.host, "Of hosts: which, as a pattern of the shell");
  command.option("--metric", flags->filter.metric,
                 "Of hosts: series by name, as a pattern of the shell");
  command.option("--wait", flags->wait, "Wait so long for a region that is not there yet");
#ifdef GREYNIC_WITH_MONITOR_PAGE
  command.option("--serve", flags->serve,
                 "Of hosts: serve a page with live charts at :PORT of loopback, or ADDRESS:PORT");
#endif
  command.flag("--json", flags->json, "One JSON object a group and read");
  command.run([flags] { return watch(*flags); });
}

}  // namespace greynic::cli
