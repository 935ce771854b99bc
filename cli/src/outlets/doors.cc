#include "outlets/doors.h"

#ifdef GREYNIC_WITH_HTTP

#include "command.h"
#ifdef GREYNIC_WITH_MONITOR_PAGE
#include "greynic/monitor_page/monitor_page.h"
#include "greynic/web/page.h"
#endif

namespace greynic::cli {

Result<std::unique_ptr<http::Server>> serve_metrics(const std::string& listen,
                                                    std::function<outlets::OpenMetrics()> make) {
  auto server = http::Server::open(listen);
  if (!server) return server;
  (*server)->metrics("/metrics", std::move(make));
  (*server)->start();
  say(fmt::format("metrics at http://{}/metrics", (*server)->address()));
  return server;
}

#ifdef GREYNIC_WITH_MONITOR_PAGE
Result<std::unique_ptr<http::Server>> serve_hosts(const std::string& listen,
                                                  const monitor::Collector& collector) {
  if (auto ready = web::check_live_pages(); !ready) return pass_on(ready);
  auto page = http::Server::open(listen);
  if (!page) return page;
  monitor_page::serve(**page, collector);
  (*page)->start();
  say(fmt::format("the page is at http://{}/", (*page)->address()));
  return page;
}
#endif

}  // namespace greynic::cli

#endif
