#include "outlets/trace_outlets.h"

#ifdef GREYNIC_WITH_TRACE

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>

#include "greynic/files/output_file.h"
#include "greynic/http/influx_sender.h"
#include "greynic/http/server.h"
#include "greynic/trace/live_view.h"
#include "greynic/trace/outputs.h"
#include "greynic/web/page.h"
#include "outlets/doors.h"
#include "progress.h"

namespace greynic::cli {
namespace {

/// The last report, for whoever asks for it from another thread, and for an InfluxDB.
class Doors {
 public:
  [[nodiscard]] Result<void> open(const TraceOutletFlags& flags) {
    if (!flags.influx.empty()) {
      auto sender = http::InfluxSender::open(flags.influx);
      if (!sender) return pass_on(sender);
      sender_ = std::move(*sender);
    }
    if (!flags.serve.empty()) {
      if (auto done = open_page(flags.serve); !done) return done;
    }
    if (flags.open_metrics.empty()) return {};
    auto server = serve_metrics(flags.open_metrics, [this] {
      const std::lock_guard lock(mutex_);
      return trace::metrics_of(report_);
    });
    if (!server) return pass_on(server);
    server_ = std::move(*server);
    return {};
  }
  [[nodiscard]] bool wanted() const { return sender_ || server_ || page_; }
  void add(const trace::JourneyEvent& event) {
    if (page_) view_.add(event);
  }
  void take(trace::Report report) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    if (page_) {
      view_.take(report, std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    }
    if (sender_) {
      char host[256] = "host";
      gethostname(host, sizeof host - 1);
      sender_->send(trace::influx_lines(
          report, host, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
    }
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }
  /// Sends what waits, and says what the database has not got.
  void finish(const std::atomic<bool>& ending) {
    if (!sender_) return;
    sender_->flush(std::chrono::seconds(5), &ending);
    const auto counts = sender_->counts();
    if (counts.lost + counts.waiting == 0) return;
    say("InfluxDB did not get " + std::to_string(counts.lost + counts.waiting) +
        " lines: " + counts.last_failure);
  }

 private:
  [[nodiscard]] Result<void> open_page(const std::string& listen) {
    if (auto ready = web::check_live_pages(); !ready) return ready;
    auto server = http::Server::open(listen);
    if (!server) return pass_on(server);
    page_ = std::move(*server);
    page_->files(trace::page_files());
    page_->files(web::files());
    page_->get("/state", [this](const http::Request& request) {
      const std::string_view text = request.value("at_ms");
      std::int64_t at = 0;
      const auto read = std::from_chars(text.data(), text.data() + text.size(), at);
      const bool named = !text.empty() && read.ec == std::errc();
      return http::Answer{.body = named ? view_.state_at(at) : view_.latest()};
    });
    page_->get("/journeys",
               [this](const http::Request&) { return http::Answer{.body = view_.journeys()}; });
    page_->start();
    say("page at http://" + page_->address() + "/");
    return {};
  }

  trace::LiveView view_;
  std::unique_ptr<http::InfluxSender> sender_;
  std::unique_ptr<http::Server> server_, page_;
  std::mutex mutex_;
  trace::Report report_;
};

/// Journeys as they come, into a file that takes its name when it is whole.
class Timeline {
 public:
  [[nodiscard]] Result<void> open(const std::string& path) {
    auto file = files::OutputFile::open(path);
    if (!file) return pass_on(file);
    file_.emplace(std::move(*file));
    timeline_.emplace([this](std::string_view text) {
      if (written_) written_ = file_->write(text);
    });
    return {};
  }
  void add(const trace::JourneyEvent& event) {
    if (timeline_) timeline_->add(event);
  }
  [[nodiscard]] Result<void> finish() {
    if (!timeline_) return {};
    timeline_->finish();
    if (!written_) return written_;
    return file_->finish();
  }

 private:
  std::optional<files::OutputFile> file_;
  std::optional<trace::JourneyTimeline> timeline_;
  Result<void> written_;
};

}  // namespace

struct TraceOutlets::State {
  Doors doors;
  Timeline timeline;
};

TraceOutlets::TraceOutlets() : state_(std::make_unique<State>()) {}
TraceOutlets::~TraceOutlets() = default;

Result<void> TraceOutlets::open(const TraceOutletFlags& flags) {
  if (!flags.perfetto.empty()) {
    if (auto done = state_->timeline.open(flags.perfetto); !done) return done;
  }
  return state_->doors.open(flags);
}

bool TraceOutlets::wanted() const { return state_->doors.wanted(); }

void TraceOutlets::add(const trace::JourneyEvent& event) {
  state_->timeline.add(event);
  state_->doors.add(event);
}

void TraceOutlets::take(trace::Report report) { state_->doors.take(std::move(report)); }

Result<void> TraceOutlets::finish(const std::atomic<bool>& ending) {
  // The file first: a database may keep us waiting.
  auto written = state_->timeline.finish();
  state_->doors.finish(ending);
  return written;
}

void add_trace_outlets(Command& command, TraceOutletFlags& flags) {
  command
      .option("--perfetto", flags.perfetto,
              "Write journeys that rules sample, or that are slow, for ui.perfetto.dev")
      .writes();
  command.option("--influx", flags.influx, "Send hops once a second: http://HOST:8086/DATABASE");
  command.option("--openmetrics", flags.open_metrics,
                 "Serve hops to Prometheus: :PORT of loopback, or HOST:PORT");
  command.option(
      "--serve", flags.serve,
      "Serve a page with devices, hops, packets that were kept, and the last quarter of an "
      "hour: :PORT of loopback, or HOST:PORT");
}

}  // namespace greynic::cli

#endif
