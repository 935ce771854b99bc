#pragma once

/// What a collector has read last, series by series, for people who look on.

#include <cstdint>
#include <string>
#include <vector>

#include "greynic/monitor/collector.h"

namespace greynic::monitor {

struct ShownSeries {
  std::string host, program, name, labels, unit, help;
  std::uint8_t kind = 1;  ///< enum zero_kind
  double value = 0;       ///< of a histogram: how many samples it has
  double p50 = 0, p99 = 0;
  std::int64_t time_ns = 0;

  /// `host name{labels}`: the same series has the same in the next snapshot.
  [[nodiscard]] std::string id() const;
};

struct SnapshotFilter {
  std::string host = "*", metric = "*";  ///< patterns of the shell
  std::size_t most = 200;                ///< series
};

struct Snapshot {
  std::vector<ShownSeries> series;  ///< by name, host and labels
  std::size_t left_out = 0;         ///< that the filter lets through, but `most` does not
};

[[nodiscard]] Snapshot snapshot_of(const Collector& collector, const SnapshotFilter& filter);

}  // namespace greynic::monitor
