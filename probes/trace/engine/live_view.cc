#include "greynic/trace/live_view.h"

#include <algorithm>

#include "greynic/files/json_file.h"

namespace greynic::trace {
namespace {

using nlohmann::json;

constexpr double kNanosecondsInMicrosecond = 1000;
constexpr std::size_t kMostPoints = 64;  // of one journey

}  // namespace

void LiveView::take(const Report& report, std::int64_t unix_ms) {
  std::map<Between, Sum> now;
  for (const Hop& hop : report.hops) {
    Sum& sum = now[{hop.from.label, hop.to.label}];
    sum.packets += hop.packets;
    sum.lost += hop.lost;
    sum.delays.merge(hop.delays);
  }
  State state{.unix_ms = unix_ms,
              .seconds = before_ms_ == 0 ? 0 : static_cast<double>(unix_ms - before_ms_) / 1000,
              .edges = {},
              .containers = report.containers,
              .one_in = report.summary.one_in,
              .events_lost = report.summary.events_lost};
  const std::lock_guard lock(mutex_);
  for (const auto& [between, sum] : now) {
    const Sum& old = before_[between];
    state.edges[between] = {.packets = sum.packets - old.packets,
                            .lost = sum.lost - old.lost,
                            .delays = sum.delays.since(old.delays)};
  }
  for (Usage& usage : state.containers) {
    Usage& old = used_before_[usage.container];
    const Usage whole = usage;
    usage.cpu_seconds = std::max(0.0, usage.cpu_seconds - old.cpu_seconds);
    if (usage.throttled_seconds) *usage.throttled_seconds -= old.throttled_seconds.value_or(0);
    old = whole;
  }
  before_ = std::move(now);
  before_ms_ = unix_ms;
  states_.push_back(std::move(state));
  if (states_.size() > kMostStates) states_.pop_front();
}

void LiveView::add(const JourneyEvent& event) {
  const std::lock_guard lock(mutex_);
  const auto [place, fresh] = journeys_.try_emplace(event.journey);
  if (place->second.size() < kMostPoints) place->second.push_back(event);
  if (!fresh) return;
  order_.push_back(event.journey);
  if (order_.size() <= kMostJourneys) return;
  journeys_.erase(order_.front());
  order_.pop_front();
}

std::string LiveView::text_of(const State& state) const {
  json edges = json::array();
  for (const auto& [between, sum] : state.edges) {
    const bool timed = sum.delays.count() > 0;
    const auto micros = [&, &sum = sum](double share) {
      return timed ? json(sum.delays.quantile_ns(share) / kNanosecondsInMicrosecond)
                   : json(nullptr);
    };
    edges.push_back({{"from", between.first},
                     {"to", between.second},
                     {"packets", sum.packets},
                     {"lost", sum.lost},
                     {"p50_us", micros(0.5)},
                     {"p99_us", micros(0.99)}});
  }
  json containers = json::array();
  for (const Usage& usage : state.containers) {
    const auto share = [&](std::optional<double> seconds) {
      return seconds && state.seconds > 0 ? json(*seconds / state.seconds) : json(nullptr);
    };
    containers.push_back(
        {{"container", usage.container},
         {"cpus", share(usage.cpu_seconds)},
         {"throttled", share(usage.throttled_seconds)},
         {"memory_bytes", usage.memory_bytes ? json(*usage.memory_bytes) : json(nullptr)}});
  }
  return files::json_text({{"time_ms", state.unix_ms},
                           {"first_ms", states_.front().unix_ms},
                           {"last_ms", states_.back().unix_ms},
                           {"seconds", state.seconds},
                           {"edges", edges},
                           {"containers", containers},
                           {"one_in", state.one_in},
                           {"events_lost", state.events_lost}});
}

std::string LiveView::state_at(std::int64_t unix_ms) const {
  const std::lock_guard lock(mutex_);
  if (states_.empty()) return "{}";
  auto behind =
      std::upper_bound(states_.begin(), states_.end(), unix_ms,
                       [](std::int64_t time, const State& state) { return time < state.unix_ms; });
  if (behind != states_.begin()) --behind;
  return text_of(*behind);
}

std::string LiveView::latest() const {
  const std::lock_guard lock(mutex_);
  return states_.empty() ? "{}" : text_of(states_.back());
}

std::string LiveView::journeys() const {
  const std::lock_guard lock(mutex_);
  json made = json::array();
  for (auto number = order_.rbegin(); number != order_.rend(); ++number) {
    const auto& events = journeys_.at(*number);
    json points = json::array();
    for (const JourneyEvent& event : events) {
      const auto since = static_cast<double>(event.time_ns - events.front().time_ns);
      points.push_back({{"point", event.point.label},
                        {"us", since / kNanosecondsInMicrosecond},
                        {"lost", event.lost ? json(event.reason) : json(nullptr)}});
    }
    made.push_back({{"journey", *number}, {"flow", events.front().flow.text}, {"points", points}});
  }
  return files::json_text(made);
}

}  // namespace greynic::trace
