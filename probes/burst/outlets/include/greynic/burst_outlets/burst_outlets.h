#pragma once

/// Bursts in the forms of others: a timeline for Perfetto, metrics for Prometheus, lines for
/// InfluxDB, and a page with pictures. docs/bursts.md names metrics and fields.

#include <string>

#include "greynic/burst/findings.h"
#include "greynic/outlets/open_metrics.h"

namespace greynic::burst_outlets {

/// One track a queue, one slice a burst, arrows between bursts with one cause.
[[nodiscard]] Result<void> write_timeline(const burst::Findings& findings, const std::string& path);

[[nodiscard]] outlets::OpenMetrics metrics_of(const burst::Findings& findings);

/// A point for each burst from number `first` on, and one for each queue.
[[nodiscard]] std::string influx_lines(const burst::Findings& findings, std::size_t first = 0);

/// An HTML file that needs no other: depth over time with who filled the queue, for the deepest
/// bursts, and a table of all. kMissing when pages are not part of this build.
[[nodiscard]] Result<void> write_report(const burst::Findings& findings, const std::string& source,
                                        const std::string& path);

}  // namespace greynic::burst_outlets
