#pragma once

/// What a collector has read last, in the words of others.

#include <string>

#include "greynic/monitor/collector.h"
#include "greynic/outlets/open_metrics.h"

namespace greynic::monitor {

/// Each series with its labels, and `host` and `program`. Units become base units (ns: seconds, B:
/// bytes). Where programs of one name give the same series, counters and histograms are added up,
/// and the gauge that was read last counts. Beside them: which hosts are up, and what was lost.
[[nodiscard]] outlets::OpenMetrics open_metrics_of(const Collector& collector);

/// Lines for InfluxDB, one for each group: `host` and `program` and the labels are tags.
[[nodiscard]] std::string influx_lines_of(const Collector& collector);

}  // namespace greynic::monitor
