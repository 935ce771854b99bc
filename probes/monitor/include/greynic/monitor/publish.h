#pragma once

/// What a collector has read last, in the words of others.

#include <string>

#include "greynic/monitor/collector.h"
#include "greynic/outlets/open_metrics.h"

namespace greynic::monitor {

/// Each series with its labels, and `host` and `program`. Units become base units (ns: seconds, B:
/// bytes). Where objects of one program give the same series, counters and histograms are added up,
/// and the gauge that was read last counts. Beside them: which hosts are up, and what was lost.
[[nodiscard]] outlets::OpenMetrics open_metrics_of(const Collector& collector);

/// Lines for InfluxDB, one for each series: `host` and `program` and the labels are tags. Series of the
/// same tags are made one as above. What has ended since the last call comes too, where the
/// collector keeps that (CollectorOptions::keeps_ended).
[[nodiscard]] std::string influx_lines_of(Collector& collector);

}  // namespace greynic::monitor
