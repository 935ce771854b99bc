#include "join.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace greynic::trace_hosts {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

// What a host can make a collector remember: journeys that never settle, for its clock runs ahead.
constexpr std::size_t kMostOpen = 1 << 18;
constexpr std::size_t kMostFound = 1 << 16;

/// The bucket of a delay, as the kernel's programs count: 16 in each power of two.
std::size_t bucket_of(std::uint64_t ns) {
  std::size_t bucket = 0;
  std::size_t step = 256;
  while (step > 0) {
    if (trace::DelayHistogram::bounds(bucket + step).first <= ns) bucket += step;
    step /= 2;
  }
  return bucket;
}

/// Packets of a flow at the edge of a host.
struct Edge {
  std::size_t host = 0;
  trace::Point point;
  std::uint64_t packets = 0;
};

struct Edges {
  trace::FlowName flow;
  std::vector<Edge> leave, enter;
};

std::uint64_t sum_of(const std::vector<Edge>& edges) {
  std::uint64_t sum = 0;
  for (const Edge& edge : edges) sum += edge.packets;
  return sum;
}

}  // namespace

std::string flow_key(const std::string& flow) {
  const std::size_t at = flow.find(" vni ");
  if (at == std::string::npos) return flow;
  const std::size_t behind = flow.find(' ', at + 5);
  return flow.substr(0, at) + (behind == std::string::npos ? "" : flow.substr(behind));
}

void Matcher::add(std::size_t host, const trace::JourneyEvent& event, std::int64_t ns,
                  double error_ns) {
  if (event.identity == 0 || event.lost) return;
  auto& open = open_[host];
  if (open.size() >= kMostOpen && !open.contains(event.journey)) {
    ++ambiguous_;
    return;
  }
  const auto [place, fresh] = open.try_emplace(event.journey);
  Journey& journey = place->second;
  if (fresh) {
    journey = {.host = host,
               .flow = event.flow,
               .first = event.point,
               .last = event.point,
               .first_ns = ns,
               .last_ns = ns,
               .error_ns = error_ns,
               .identity = event.identity};
  }
  journey.last = event.point;
  journey.last_ns = ns;
  journey.error_ns = std::max(journey.error_ns, error_ns);
}

void Matcher::settle(std::int64_t ns) {
  // A packet's journeys are joined together, so nothing is settled whose other half may still come.
  std::map<std::pair<std::string, std::uint64_t>, std::vector<Journey>> packets;
  for (auto& [host, open] : open_) {
    std::erase_if(open, [&](const auto& one) {
      const Journey& journey = one.second;
      if (journey.last_ns > ns) return false;
      packets[{flow_key(journey.flow.text), journey.identity}].push_back(journey);
      return true;
    });
  }
  for (auto& [packet, journeys] : packets) join(journeys);
}

void Matcher::join(std::vector<Journey>& journeys) {
  std::sort(journeys.begin(), journeys.end(),
            [](const Journey& one, const Journey& other) { return one.first_ns < other.first_ns; });
  std::set<std::size_t> hosts;
  for (const Journey& journey : journeys) {
    // Numbers begin anew after some 65,000 packets: the same host twice, or a second apart, are two.
    const bool twice = !hosts.insert(journey.host).second;
    if (twice || journey.first_ns - journeys.front().first_ns > kSecondNs) {
      ++ambiguous_;
      return;
    }
  }
  for (std::size_t i = 1; i < journeys.size(); ++i) {
    const Journey& from = journeys[i - 1];
    const Journey& to = journeys[i];
    Key key{flow_key(from.flow.text), from.last, to.first};
    if (found_.size() >= kMostFound && !found_.contains(key)) continue;
    Between& between = found_[std::move(key)];
    between.flow = from.flow;
    // Within the error of the clocks a packet may seem to arrive before it left.
    const auto delay = static_cast<double>(std::max<std::int64_t>(0, to.first_ns - from.last_ns));
    between.delays.add(bucket_of(static_cast<std::uint64_t>(delay)), 1);
    ++between.packets;
    between.sum_ns += delay;
    between.max_ns = std::max(between.max_ns, delay);
    between.error_ns = std::max(between.error_ns, from.error_ns + to.error_ns);
  }
}

std::vector<trace::Hop> counted_between(const std::vector<trace::Report>& reports) {
  std::map<std::string, Edges> flows;
  for (std::size_t host = 0; host < reports.size(); ++host) {
    // Unsigned, so that sums of what a host makes up are defined, whatever they are.
    std::map<std::pair<std::string, trace::Point>, std::uint64_t> staying;
    for (const trace::Begin& begin : reports[host].begins) {
      const std::string key = flow_key(begin.flow.text);
      staying[{key, begin.point}] += begin.packets;
      flows[key].flow = begin.flow;
      if (!begin.point.queued) flows[key].enter.push_back({host, begin.point, begin.packets});
    }
    for (const trace::Hop& hop : reports[host].hops) {
      const std::string key = flow_key(hop.flow.text);
      staying[{key, hop.from}] -= hop.packets + hop.lost;
      staying[{key, hop.to}] += hop.packets;
    }
    for (const auto& [where, packets] : staying) {
      const auto& [key, point] = where;
      if (point.queued && !point.label.empty() && static_cast<std::int64_t>(packets) > 0) {
        flows[key].leave.push_back({host, point, packets});
      }
    }
  }
  std::vector<trace::Hop> made;
  const auto fewer = [](const Edge& one, const Edge& other) { return one.packets < other.packets; };
  for (const auto& [key, edges] : flows) {
    if (edges.leave.empty() || edges.enter.empty()) continue;
    const Edge& from = *std::max_element(edges.leave.begin(), edges.leave.end(), fewer);
    const Edge& to = *std::max_element(edges.enter.begin(), edges.enter.end(), fewer);
    if (from.host == to.host) continue;
    const std::uint64_t left = sum_of(edges.leave);
    const std::uint64_t entered = sum_of(edges.enter);
    trace::Hop hop{.flow = edges.flow, .from = from.point, .to = to.point};
    hop.packets = hop.segments = entered;
    hop.lost = left > entered ? left - entered : 0;
    if (hop.lost > 0) hop.lost_reasons["BETWEEN_HOSTS"] = hop.lost;
    made.push_back(std::move(hop));
  }
  return made;
}

}  // namespace greynic::trace_hosts
