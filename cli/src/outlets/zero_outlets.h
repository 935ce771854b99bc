#pragma once

/// Where samples of `greynic zero collect` go besides its store.

#include <memory>
#include <string>

#include "command.h"
#include "greynic/core/result.h"
#include "greynic/monitor/collector.h"

namespace greynic::cli {

struct ZeroOutletFlags {
  std::string open_metrics, influx, serve, json_lines;
};

/// Adds --serve, --openmetrics, --influx and --json-lines, as far as this program has them.
void add_zero_outlets(Command& command, ZeroOutletFlags& flags);

class ZeroOutlets {
 public:
  ZeroOutlets();
  ~ZeroOutlets();
  /// What `options` of a collector need for them; each sample as a line begins here.
  [[nodiscard]] Result<void> prepare(const ZeroOutletFlags& flags,
                                     monitor::CollectorOptions& options);
  /// The others, which look at what the collector has read last.
  [[nodiscard]] Result<void> begin(const ZeroOutletFlags& flags, monitor::Collector& collector);
  /// Says what was sent; kIo: a file of lines could not be written. A database that does not answer is waited for no longer than `ending` is
  /// unset.
  Result<void> end(const std::atomic<bool>* ending = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace greynic::cli
