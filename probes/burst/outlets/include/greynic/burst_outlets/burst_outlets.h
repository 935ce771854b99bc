#pragma once

/// Bursts in the forms of others: JSON, a timeline for Perfetto, metrics for Prometheus, lines for
/// InfluxDB, and a page with pictures. docs/bursts.md names metrics and fields.
///
/// Whatever lists all bursts is told them one by one, and keeps them in a file: their number does
/// not matter.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "greynic/burst/findings.h"
#include "greynic/files/output_file.h"
#include "greynic/outlets/open_metrics.h"
#include "greynic/outlets/trace_events.h"
#include "greynic/web/page.h"

namespace greynic::burst_outlets {

/// configs/schema/burst.schema.json. Nothing is given away before the source has come to its end.
class JsonList {
 public:
  [[nodiscard]] static Result<JsonList> open();
  void add(const burst::Findings& findings, const burst::Burst& burst);
  /// The whole text, in pieces. kIo when there was no room for it.
  [[nodiscard]] Result<void> finish(const burst::Findings& findings,
                                    const std::function<void(std::string_view)>& put);

 private:
  explicit JsonList(files::OutputFile file) : file_(std::move(file)) {}
  void flush(std::size_t at_least);

  files::OutputFile file_;  ///< never gets a name
  std::string waiting_;
  Result<void> written_;
  bool any_ = false;
};

/// One track a queue, one slice a burst, arrows between bursts with one cause.
class Timeline {
 public:
  [[nodiscard]] static Result<Timeline> open(const std::string& path);
  void add(const burst::Burst& burst);
  /// Names the queues, and the file.
  [[nodiscard]] Result<void> finish(const burst::Findings& findings);

 private:
  struct Written {
    explicit Written(files::OutputFile opened) : file(std::move(opened)) {}
    files::OutputFile file;
    Result<void> all;
  };
  struct Start {
    std::uint32_t queue = 0;
    std::uint64_t ns = 0;
  };
  explicit Timeline(std::unique_ptr<Written> written);

  std::unique_ptr<Written> written_;  ///< stays where it is when the timeline moves
  outlets::TraceEvents events_;
  std::size_t bursts_ = 0, arrows_ = 0;
  std::unordered_map<std::size_t, Start> related_;  ///< by number: those that arrows may lead from
};

/// An HTML file that needs no other: depth over time with who filled the queue, for the deepest
/// bursts, and a table of the first.
class Report {
 public:
  Report();
  void add(const burst::Findings& findings, const burst::Burst& burst);
  /// kMissing when pages are not part of this build.
  [[nodiscard]] Result<void> write(const burst::Findings& findings, const std::string& source,
                                   const std::string& path) const;

 private:
  web::Table table_;
  std::vector<burst::Burst> pictured_;  ///< deepest first
};

[[nodiscard]] outlets::OpenMetrics metrics_of(const burst::Findings& findings);

[[nodiscard]] std::string influx_line(const burst::Findings& findings, const burst::Burst& burst);
/// The numbers of all.
[[nodiscard]] std::string influx_totals(const burst::Findings& findings);

}  // namespace greynic::burst_outlets
