#include "outlets/zero_outlets.h"

#include <chrono>
#include <thread>

#include "greynic/monitor/json_lines.h"
#include "greynic/monitor/publish.h"
#include "outlets/doors.h"
#ifdef GREYNIC_WITH_HTTP
#include "greynic/http/influx_sender.h"
#endif

namespace greynic::cli {

struct ZeroOutlets::State {
  std::shared_ptr<monitor::JsonLines> lines;
#ifdef GREYNIC_WITH_HTTP
  std::unique_ptr<http::Server> server, page;
  std::unique_ptr<http::InfluxSender> sender;
  std::thread sending;
  monitor::Collector* collector = nullptr;
  std::atomic<bool> over{false};

  void send() {
    constexpr int kTurns = 10;  // of 100 ms: the lines of a second
    for (int turn = 1; !over; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (turn % kTurns == 0) sender->send(monitor::influx_lines_of(*collector));
    }
    sender->send(monitor::influx_lines_of(*collector));
  }
#endif
};

ZeroOutlets::ZeroOutlets() : state_(std::make_unique<State>()) {}
ZeroOutlets::~ZeroOutlets() { (void)end(); }

Result<void> ZeroOutlets::prepare(const ZeroOutletFlags& flags,
                                  monitor::CollectorOptions& options) {
  options.keeps_ended = !flags.influx.empty();
  if (flags.json_lines.empty()) return {};
  auto lines = monitor::JsonLines::open({.path = flags.json_lines});
  if (!lines) return lines.error().while_doing("--json-lines");
  state_->lines = std::move(*lines);
  options.lines = state_->lines;
  options.ends_with_lines = options.store.empty() && flags.open_metrics.empty() &&
                            flags.influx.empty() && flags.serve.empty();
  return {};
}

#ifdef GREYNIC_WITH_HTTP

Result<void> ZeroOutlets::begin(const ZeroOutletFlags& flags, monitor::Collector& collector) {
  State& s = *state_;
  if (!flags.open_metrics.empty()) {
    auto server = serve_metrics(flags.open_metrics,
                                [&collector] { return monitor::open_metrics_of(collector); });
    if (!server) return pass_on(server);
    s.server = std::move(*server);
  }
#ifdef GREYNIC_WITH_MONITOR_PAGE
  if (!flags.serve.empty()) {
    auto page = serve_hosts(flags.serve, collector);
    if (!page) return pass_on(page);
    s.page = std::move(*page);
  }
#endif
  if (!flags.influx.empty()) {
    auto sender = http::InfluxSender::open(flags.influx);
    if (!sender) return pass_on(sender);
    s.sender = std::move(*sender);
    s.collector = &collector;
    s.sending = std::thread([&s] { s.send(); });
  }
  return {};
}

#else

Result<void> ZeroOutlets::begin(const ZeroOutletFlags&, monitor::Collector&) { return {}; }

#endif

Result<void> ZeroOutlets::end([[maybe_unused]] const std::atomic<bool>* ending) {
  State& s = *state_;
  Result<void> done;
  if (s.lines) {
    s.lines->finish(std::chrono::seconds(1));
    const auto counts = s.lines->counts();
    say(fmt::format("{} lines of JSON written, {} lost{}{}", counts.written, counts.lost,
                    counts.last_failure.empty() ? "" : ": ", counts.last_failure));
    done = s.lines->complete();
    s.lines.reset();
  }
#ifdef GREYNIC_WITH_HTTP
  s.over = true;
  if (s.sending.joinable()) s.sending.join();
  if (s.sender) {
    s.sender->flush(std::chrono::seconds(2), ending);
    const auto counts = s.sender->counts();
    say(fmt::format("InfluxDB took {} lines; {} lost, {} not sent{}{}", counts.sent,
                    counts.lost + s.collector->counts().forgotten, counts.waiting,
                    counts.last_failure.empty() ? "" : ": ", counts.last_failure));
    s.sender.reset();
  }
  s.server.reset();
  s.page.reset();
#endif
  return done;
}

void add_zero_outlets(Command& command, ZeroOutletFlags& flags) {
  command
      .option("--json-lines", flags.json_lines,
              "Append each sample to a file as a line of JSON; - is stdout")
      .writes();
#ifdef GREYNIC_WITH_MONITOR_PAGE
  command.option("--serve", flags.serve,
                 "Serve a page with live charts: :PORT of loopback, or ADDRESS:PORT");
#endif
#ifdef GREYNIC_WITH_HTTP
  command.option("--openmetrics", flags.open_metrics,
                 "Serve the last values to Prometheus: :PORT of loopback, or ADDRESS:PORT");
  command.option("--influx", flags.influx,
                 "Send the last values each second: http://HOST:8086/DATABASE");
#endif
}

}  // namespace greynic::cli
