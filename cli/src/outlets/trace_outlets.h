#pragma once

/// Where a trace goes besides stdout: options and doors that `greynic trace run` and `collect` share.

#ifdef GREYNIC_WITH_TRACE

#include <atomic>
#include <memory>
#include <string>

#include "command.h"
#include "greynic/core/result.h"
#include "greynic/trace/tracer.h"

namespace greynic::cli {

struct TraceOutletFlags {
  std::string perfetto, influx, open_metrics, serve;
};

/// Adds --perfetto, --influx, --openmetrics and --serve.
void add_trace_outlets(Command& command, TraceOutletFlags& flags);

class TraceOutlets {
 public:
  TraceOutlets();
  ~TraceOutlets();
  [[nodiscard]] Result<void> open(const TraceOutletFlags& flags);
  /// Somebody looks at reports while the trace runs.
  [[nodiscard]] bool wanted() const;
  void add(const trace::JourneyEvent& event);
  void take(trace::Report report);
  /// The file of journeys takes its name; what waits is sent, and what the database has not got told.
  /// No longer than `ending` is unset.
  [[nodiscard]] Result<void> finish(const std::atomic<bool>& ending);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace greynic::cli

#endif
