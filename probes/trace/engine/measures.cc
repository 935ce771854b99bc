#include <algorithm>

#include "greynic/files/json_file.h"
#include "greynic/trace/tracer.h"

namespace greynic::trace {
namespace {

/// All flows between two points.
struct Between {
  DelayHistogram delays;
  std::uint64_t packets = 0, lost = 0;
};

/// "h1/port>h1/vx", with "-" for nowhere.
std::string hop_name(const Hop& hop) {
  const auto end = [](const Point& point) { return point.label.empty() ? "-" : point.label; };
  return end(hop.from) + ">" + end(hop.to);
}

}  // namespace

std::string measures_line(const Report& report) {
  std::map<std::string, Between> hops;
  for (const Hop& hop : report.hops) {
    Between& into = hops[hop_name(hop)];
    into.delays.merge(hop.delays);
    into.packets += hop.packets;
    into.lost += hop.lost;
  }
  constexpr double kMicrosecond = 1000;
  nlohmann::json line = nlohmann::json::object();
  for (const auto& [name, hop] : hops) {
    if (hop.delays.count() > 0) {
      line["hop_p50_us." + name] = hop.delays.quantile_ns(0.5) / kMicrosecond;
      line["hop_p99_us." + name] = hop.delays.quantile_ns(0.99) / kMicrosecond;
    }
    const auto sent = static_cast<double>(std::max<std::uint64_t>(1, hop.packets + hop.lost));
    line["hop_loss_share." + name] = static_cast<double>(hop.lost) / sent;
  }
  return files::json_text(line) + "\n";
}

}  // namespace greynic::trace
