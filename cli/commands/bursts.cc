#include "greynic/twin/bursts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/capture/capture.h"
#include "greynic/daemon/ending.h"
#include "greynic/files/output_file.h"
#include "greynic/files/shipped.h"
#include "greynic/live/live.h"
#include "outlets/doors.h"
#include "progress.h"

#ifdef GREYNIC_WITH_HTTP
#include <mutex>

#include "greynic/http/influx_sender.h"
#include "greynic/http/server.h"
#endif

namespace greynic::cli {
namespace {

struct BurstsFlags {
  std::string pcap, target, workload, live;
  std::optional<std::chrono::nanoseconds> duration;
  bool rate_given = false;
  burst::ReplayOptions replay;
  bool dequeue_only = false;
  std::uint64_t ring = 1000;
  std::string marks, timeline, report, metrics, influx;
  bool as_json = false;
};

/// The numbers of marked packets, one a line.
class MarksFile {
 public:
  [[nodiscard]] Result<void> open(const std::string& path) {
    auto opened = files::OutputFile::open(path);
    if (!opened) return pass_on(opened);
    file_.emplace(std::move(*opened));
    return {};
  }
  void add(std::uint64_t number) {
    std::array<char, 24> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    waiting_.append(text.data(), end);
    waiting_ += '\n';
    if (waiting_.size() >= kPiece) flush();
  }
  [[nodiscard]] Result<void> finish() {
    flush();
    return written_ ? file_->finish() : written_;
  }
  [[nodiscard]] bool is_open() const { return file_.has_value(); }

 private:
  static constexpr std::size_t kPiece = 1 << 20;
  void flush() {
    if (written_) written_ = file_->write(waiting_);
    waiting_.clear();
  }

  std::optional<files::OutputFile> file_;
  std::string waiting_;
  Result<void> written_;
};

/// What --openmetrics serves and --influx sends, while packets still come and after.
class Publisher {
 public:
#ifdef GREYNIC_WITH_HTTP
  [[nodiscard]] Result<void> open(const BurstsFlags& flags) {
    if (!flags.influx.empty()) {
      auto sender = http::InfluxSender::open(flags.influx);
      if (!sender) return pass_on(sender);
      sender_ = std::move(*sender);
    }
    if (flags.metrics.empty()) return {};
    auto server = serve_metrics(flags.metrics, [this] {
      const std::lock_guard lock(mutex_);
      return latest_;
    });
    if (!server) return pass_on(server);
    server_ = std::move(*server);
    update({});  // who asks before the first burst hears of none
    return {};
  }
  void add(const burst::Findings& findings, const burst::Burst& burst, bool may_wait) {
    if (!sender_) return;
    sender_->send(burst_outlets::influx_line(findings, burst));
    // A source that can wait is not faster than the database.
    if (++sent_ % kMostAhead == 0 && may_wait) (void)sender_->flush(std::chrono::seconds(10));
  }
  void update(const burst::Findings& findings) {
    if (server_) {
      auto metrics = burst_outlets::metrics_of(findings);
      const std::lock_guard lock(mutex_);
      latest_ = std::move(metrics);
    }
    if (sender_) sender_->send(burst_outlets::influx_totals(findings));
  }
  /// Sends what waits; gives the exit code.
  int finish(const std::atomic<bool>* ending) {
    if (!sender_) return 0;
    const bool whole = sender_->flush(std::chrono::seconds(10), ending);
    const auto counts = sender_->counts();
    if (whole && counts.lost == 0) return 0;
    return tell({ErrorCode::kIo, fmt::format("{} lines were lost on the way to the database: {}",
                                             counts.lost + counts.waiting, counts.last_failure)});
  }
  [[nodiscard]] bool serves() const { return server_ != nullptr; }

 private:
  static constexpr std::uint64_t kMostAhead = 50'000;
  std::mutex mutex_;
  outlets::OpenMetrics latest_;
  std::uint64_t sent_ = 0;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::InfluxSender> sender_;
#else
  [[nodiscard]] Result<void> open(const BurstsFlags& flags) {
    if (flags.metrics.empty() && flags.influx.empty()) return {};
    return fail(ErrorCode::kMissing,
                "--openmetrics and --influx need cpp-httplib, which this greynic was built "
                "without; install libcpp-httplib-dev (scripts/setup.sh does) and build again");
  }
  void add(const burst::Findings&, const burst::Burst&, bool) {}
  void update(const burst::Findings&) {}
  int finish(const std::atomic<bool>*) { return 0; }
  [[nodiscard]] bool serves() const { return false; }
#endif
};

/// All that is printed, written, served and sent of bursts.
class Outputs {
 public:
  explicit Outputs(const BurstsFlags& flags) : flags_(flags) {}
  [[nodiscard]] Result<void> open() {
    if (flags_.as_json) {
      auto list = burst_outlets::JsonList::open();
      if (!list) return pass_on(list);
      list_.emplace(std::move(*list));
    }
    if (!flags_.timeline.empty()) {
      auto timeline = burst_outlets::Timeline::open(flags_.timeline);
      if (!timeline) return pass_on(timeline);
      timeline_.emplace(std::move(*timeline));
    }
    if (!flags_.report.empty()) report_.emplace();
    return publisher_.open(flags_);
  }
  void add(const burst::Findings& findings, const burst::Burst& burst) {
    if (list_) list_->add(findings, burst);
    if (timeline_) timeline_->add(burst);
    if (report_) report_->add(findings, burst);
    publisher_.add(findings, burst, flags_.live.empty());
    if (findings.tally.bursts() % kMetricsEach == 0) publisher_.update(findings);
  }
  void update(const burst::Findings& findings) { publisher_.update(findings); }
  [[nodiscard]] bool serves() const { return publisher_.serves(); }

  /// Prints and writes what was found; gives the exit code.
  int finish(const burst::Findings& findings, const std::string& source,
             const std::atomic<bool>* ending) {
    if (list_) {
      const auto whole = list_->finish(findings, [](std::string_view text) { put(text); });
      if (!whole) return tell(whole.error());
    } else {
      put(to_text(findings));
    }
    flush_output();
    if (findings.clock_ran_back > 0) {
      say(
          fmt::format("{} packets have a time before that of the packet before them, and count as "
                      "arriving with it; put them in order first (reordercap) if that is wrong",
                      findings.clock_ran_back));
    }
    if (timeline_) {
      if (const auto whole = timeline_->finish(findings); !whole) return tell(whole.error());
    }
    if (report_) {
      const auto written = report_->write(findings, source, flags_.report);
      if (!written) return tell(written.error());
    }
    publisher_.update(findings);
    if (const int code = publisher_.finish(ending); code != 0) return code;
    if (!findings.incomplete.empty()) return tell({ErrorCode::kBadInput, findings.incomplete});
    return 0;
  }

 private:
  static constexpr std::uint64_t kMetricsEach = 1000;  ///< bursts, while a replay goes on
  const BurstsFlags& flags_;
  std::optional<burst_outlets::JsonList> list_;
  std::optional<burst_outlets::Timeline> timeline_;
  std::optional<burst_outlets::Report> report_;
  Publisher publisher_;
};

/// The end of a source that has one: metrics are served until somebody ends us.
int finish_and_serve(Outputs& outputs, const burst::Findings& findings, const std::string& source) {
  std::optional<daemon::Ending> ending;
  if (outputs.serves()) ending.emplace("greynic bursts");
  const int code = outputs.finish(findings, source, ending ? &ending->asked() : nullptr);
  while (ending && !ending->asked()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return code;
}

int replay(const BurstsFlags& flags) {
  MarksFile marks;
  if (!flags.marks.empty()) {
    const std::string inputs[] = {flags.pcap};
    if (const auto good = files::not_an_input(flags.marks, inputs); !good)
      return tell(good.error());
    if (const auto opened = marks.open(flags.marks); !opened) return tell(opened.error());
  }
  Outputs outputs(flags);
  if (const auto opened = outputs.open(); !opened) return tell(opened.error());
  burst::ReplayOptions options = flags.replay;
  options.found = [&outputs](const burst::Findings& findings, const burst::Burst& burst) {
    outputs.add(findings, burst);
  };
  Progress progress("replaying", 1.0);
  const auto findings = capture::replay_capture(
      flags.pcap, options,
      marks.is_open() ? burst::Replay::Marked([&marks](std::uint64_t number) { marks.add(number); })
                      : burst::Replay::Marked(),
      [&progress](double share) { progress.update(share); });
  progress.clear();
  if (!findings) return tell(findings.error());
  if (marks.is_open()) {
    if (const auto kept = marks.finish(); !kept) return tell(kept.error());
  }
  return finish_and_serve(outputs, *findings, flags.pcap);
}

/// Traffic of a workload file on a twin.
int simulate(const BurstsFlags& flags) {
  constexpr std::string_view kKind = "twin:";
  if (!flags.target.starts_with(kKind) || flags.workload.empty()) {
    return tell({ErrorCode::kBadInput,
                 "--target takes a twin, and --workload its traffic: --target twin:cx6 --workload "
                 "FILE (docs/formats/burst_workload.md)"});
  }
  const auto workload = twin::read_burst_workload(files::shipped_file("examples", flags.workload),
                                                  flags.target.substr(kKind.size()));
  if (!workload) return tell(workload.error());
  Outputs outputs(flags);
  if (const auto opened = outputs.open(); !opened) return tell(opened.error());
  Progress progress("simulating", 1.0);
  twin::BurstWatchOptions options;
  options.allowance = flags.replay.allowance;
  options.mode = flags.replay.mode;
  options.ring_records = flags.replay.ring_records;
  options.progress = [&progress](double share) { progress.update(share); };
  const auto findings = twin::watch_bursts(*workload, options);
  progress.clear();
  if (!findings) return tell(findings.error());
  for (const burst::Burst& burst : findings->bursts) outputs.add(*findings, burst);
  return finish_and_serve(outputs, *findings, flags.target);
}

/// Steps of the threshold that were asked for by signals and not taken yet.
std::atomic<int> asked_steps{0};
static_assert(std::atomic<int>::is_always_lock_free);

void listen_for_steps() {
  std::signal(SIGUSR1, [](int) { ++asked_steps; });
  std::signal(SIGUSR2, [](int) { --asked_steps; });
}

/// One percent of the round trip for each step.
Result<void> take_steps(live::LiveProbe& probe) {
  const int steps = asked_steps.exchange(0);
  if (steps == 0) return {};
  burst::Allowance allowance = probe.findings().allowance;
  constexpr std::int64_t kPercent = 1'000'000, kMost = 10'000 * kPercent;
  const auto share = static_cast<std::int64_t>(allowance.share_e8) + steps * kPercent;
  allowance.share_e8 = static_cast<std::uint64_t>(std::clamp<std::int64_t>(share, 0, kMost));
  if (auto set = probe.allow(allowance.share_e8); !set) return set;
  say(fmt::format("threshold {} bytes from now on, {:g} % of the round trip",
                  allowance.threshold_bytes(), static_cast<double>(allowance.share_e8) * 1e-6));
  return {};
}

/// A device of this host, until --for is over or somebody ends us.
int watch_device(const BurstsFlags& flags) {
  live::LiveOptions options;
  options.interface = flags.live;
  options.allowance = flags.replay.allowance;
  if (!flags.rate_given) options.allowance.bits_per_second = 0;
  options.ring_records = flags.ring;
  options.mode = flags.replay.mode;
  std::vector<burst::Burst> fresh;
  options.found = [&fresh](const burst::Burst& burst) { fresh.push_back(burst); };
  const daemon::Ending ending("greynic bursts");
  listen_for_steps();
  auto probe = live::LiveProbe::open(options);
  if (!probe) return tell(probe.error());
  Outputs outputs(flags);
  if (const auto opened = outputs.open(); !opened) return tell(opened.error());
  const auto hand_on = [&] {
    const burst::Findings so_far = (*probe)->findings();
    for (const burst::Burst& burst : fresh) outputs.add(so_far, burst);
    fresh.clear();
    return so_far;
  };
  say(fmt::format("watching {}; Ctrl-C ends", flags.live));
  const auto start = std::chrono::steady_clock::now();
  auto told = start;
  const auto over = [&] {
    return ending.asked() ||
           (flags.duration && std::chrono::steady_clock::now() - start > *flags.duration);
  };
  while (!over()) {
    if (const auto taken = (*probe)->poll(std::chrono::milliseconds(50)); !taken) {
      return tell(taken.error());
    }
    if (const auto taken = take_steps(**probe); !taken) {
      return tell(taken.error());
    }
    if (std::chrono::steady_clock::now() - told < std::chrono::seconds(1)) continue;
    told = std::chrono::steady_clock::now();
    outputs.update(hand_on());
  }
  const burst::Findings findings = hand_on();
  if (findings.left_unseen > 0) {
    say(
        fmt::format("{} packets left without an event; that they left was told from the queue's "
                    "length, when is known no better than to the next packet",
                    findings.left_unseen));
  }
  return outputs.finish(findings, flags.live, &ending.asked());
}

/// One source, and no option that it would not look at.
Result<void> check(const BurstsFlags& flags) {
  const int sources =
      (flags.pcap.empty() ? 0 : 1) + (flags.target.empty() ? 0 : 1) + (flags.live.empty() ? 0 : 1);
  if (sources != 1) {
    return fail(ErrorCode::kBadInput,
                std::string(sources == 0 ? "say where" : "say only once where") +
                    " the packets come from: --pcap FILE, --target twin:cx6 or --live IFACE");
  }
  const struct {
    const char* option;
    bool given;
    const char* source;
    const std::string& needed;
  } rows[] = {{"--marks", !flags.marks.empty(), "--pcap", flags.pcap},
              {"--mirror", flags.replay.mirror_bits_per_second != 0, "--pcap", flags.pcap},
              {"--for", flags.duration.has_value(), "--live", flags.live},
              {"--workload", !flags.workload.empty(), "--target", flags.target}};
  for (const auto& row : rows) {
    if (!row.given || !row.needed.empty()) continue;
    return fail(ErrorCode::kBadInput,
                fmt::format("{} works with {} alone; leave it out", row.option, row.source));
  }
  return {};
}

int bursts(BurstsFlags flags) {
  if (const auto good = check(flags); !good) return tell(good.error());
  if (flags.pcap != "-") flags.pcap = files::shipped_file("examples", flags.pcap);
  flags.replay.mode = flags.dequeue_only ? burst::Mode::kDequeueOnly : burst::Mode::kArmedAtEnqueue;
  flags.replay.ring_records = flags.ring;
  flags.replay.keep_profiles = !flags.report.empty();
  if (!flags.pcap.empty()) return replay(flags);
  return flags.target.empty() ? watch_device(flags) : simulate(flags);
}

}  // namespace

void add_bursts(Program& program) {
  auto flags = std::make_shared<BurstsFlags>();
  Command command = program.command(
      "bursts", "Find microbursts, and the flows that fill the queue",
      "  greynic bursts --pcap capture.pcap --rate 10gbps --rtt 25us --allow 5%\n"
      "  greynic bursts --pcap capture.pcap --rate 25gbps --json --marks marked.txt\n"
      "  greynic bursts --target twin:cx6 --workload burst_incast.json --rtt 10us");
  command.option("--pcap", flags->pcap,
                 "Capture (pcap, pcapng; - is stdin) to replay through a queue of --rate");
  command.option("--live", flags->live, "Network device of this host whose queue to watch");
  command.option("--for", flags->duration, "How long to watch a device; else until Ctrl-C");
  command.option("--target", flags->target, "Twin to send the traffic of --workload over");
  command.option("--workload", flags->workload,
                 "Traffic between hosts of the twin (docs/formats/burst_workload.md)");
  const auto rate = [&command](const std::string& name, std::uint64_t* into,
                               const std::shared_ptr<BurstsFlags>& owner, const std::string& help) {
    command.option(
        name,
        [into, owner](const std::string& word) -> Result<void> {
          const auto read = burst::parse_rate(word);
          if (!read) return pass_on(read);
          *into = *read;
          if (into == &owner->replay.allowance.bits_per_second) owner->rate_given = true;
          return {};
        },
        help);
  };
  rate("--rate", &flags->replay.allowance.bits_per_second, flags,
       "At which the queue drains, 1bps to 1000tbps (10gbps; a watched tbf: its own)");
  command.option(
      "--rtt",
      [flags](const std::string& word) -> Result<void> {
        const auto read = parse_duration(word);
        if (!read) return pass_on(read);
        if (read->count() < 1) {
          return fail(ErrorCode::kBadInput, "a round trip takes 1ns at least");
        }
        flags->replay.allowance.rtt = *read;
        return {};
      },
      "Round trip of the traffic (50us)");
  command.option(
      "--allow",
      [flags](const std::string& word) -> Result<void> {
        const auto read = burst::parse_allowed(word);
        if (!read) return pass_on(read);
        flags->replay.allowance.share_e8 = *read;
        return {};
      },
      "Delay that is allowed, as a share of the round trip; more is a burst (30%); SIGUSR1 adds 1% "
      "while a device is watched, SIGUSR2 takes 1% away");
  command.option("--ring", flags->ring, "Records that the ring of the queue holds")
      .range(1, 1 << 24);
  rate("--mirror", &flags->replay.mirror_bits_per_second, flags,
       "Empty the ring over a mirror port of this rate, as a switch does (at once)");
  command.flag("--dequeue-only", flags->dequeue_only,
               "Look at the depth only when packets leave, as a switch does");
  command
      .option("--marks", flags->marks,
              "File to write: the numbers of the packets that took part, from 0")
      .writes();
  command
      .option("-o,--out", flags->report, "HTML file to write: depth over time, flows, all bursts")
      .writes();
  command.option("--perfetto", flags->timeline, "Timeline to write, for ui.perfetto.dev").writes();
  command.option("--openmetrics", flags->metrics,
                 "Serve metrics at [HOST]:PORT/metrics until Ctrl-C; without HOST on loopback");
  command.option("--influx", flags->influx,
                 "Send bursts to an InfluxDB, such as http://HOST:8086/DATABASE");
  command.flag("--json", flags->as_json, "JSON on stdout (docs/formats/burst.md)");
  command.run([flags] { return bursts(*flags); });
}

}  // namespace greynic::cli
