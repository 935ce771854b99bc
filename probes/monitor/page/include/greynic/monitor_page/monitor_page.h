#pragma once

/// `greynic zero collect --serve`: a page that shows what a collector reads, while it reads it. Hosts
/// are cells of a heat map, coloured by any metric; series are charts of the last five minutes. The
/// page asks once a second for the series that its filter names, and keeps their history itself, so
/// the collector keeps nothing for it.

#include "greynic/http/server.h"
#include "greynic/monitor/collector.h"

namespace greynic::monitor_page {

/// Adds the page ("/") and what it asks for ("/live") to a server that has not started. The collector
/// must outlive the server.
void serve(http::Server& server, const monitor::Collector& collector);

}  // namespace greynic::monitor_page
