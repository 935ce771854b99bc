#pragma once

/// Doors that commands open for people and scrapers while they run.

#ifdef GREYNIC_WITH_HTTP

#include <functional>
#include <memory>
#include <string>

#include "greynic/core/result.h"
#include "greynic/http/server.h"
#ifdef GREYNIC_WITH_MONITOR_PAGE
#include "greynic/monitor/collector.h"
#endif

namespace greynic::cli {

/// Serves what `make` gives to Prometheus, and says where. Errors as http::Server::open.
[[nodiscard]] Result<std::unique_ptr<http::Server>> serve_metrics(
    const std::string& listen, std::function<outlets::OpenMetrics()> make);

#ifdef GREYNIC_WITH_MONITOR_PAGE
/// Serves the live page of a collector, and says where. Besides, kMissing: this program has no charts.
[[nodiscard]] Result<std::unique_ptr<http::Server>> serve_hosts(
    const std::string& listen, const monitor::Collector& collector);
#endif

}  // namespace greynic::cli

#endif
