#pragma once

/// A running trace as a page shows it: what passed between devices in each interval of the last minutes,
/// and the last journeys, as JSON. Thread-safe: one side takes reports, others ask.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "greynic/core/embedded.h"
#include "greynic/trace/tracer.h"

namespace greynic::trace {

/// index.html and live.js; they use page.css and echarts.min.js of greynic::web.
[[nodiscard]] std::span<const EmbeddedFile> page_files();

class LiveView {
 public:
  static constexpr std::size_t kMostStates = 900;  ///< a quarter of an hour, by the second
  static constexpr std::size_t kMostJourneys = 200;

  /// What has changed since the last report is a state of its own.
  void take(const Report& report, std::int64_t unix_ms);
  void add(const JourneyEvent& event);

  /// {"time_ms", "first_ms", "seconds", "edges": [{"from", "to", "packets", "lost", "p50_us", "p99_us"}],
  /// "containers": [{"container", "cpus", "throttled", "memory_bytes"}], "one_in", "events_lost"}: the last state that is no later, or the first; "{}" when there is none.
  [[nodiscard]] std::string state_at(std::int64_t unix_ms) const;
  [[nodiscard]] std::string latest() const;
  /// [{"journey", "flow", "points": [{"point", "us", "lost"}]}], the last ones first.
  [[nodiscard]] std::string journeys() const;

 private:
  using Between = std::pair<std::string, std::string>;  ///< labels of two devices
  struct Sum {
    std::uint64_t packets = 0, lost = 0;
    DelayHistogram delays;
  };
  struct State {
    std::int64_t unix_ms = 0;
    double seconds = 0;
    std::map<Between, Sum> edges;
    std::vector<Usage> containers;  ///< in these seconds
    std::uint32_t one_in = 1;
    std::uint64_t events_lost = 0;
  };
  [[nodiscard]] std::string text_of(const State& state) const;

  mutable std::mutex mutex_;
  std::map<Between, Sum> before_;
  std::map<std::string, Usage> used_before_;
  std::int64_t before_ms_ = 0;
  std::deque<State> states_;
  std::map<std::uint64_t, std::deque<JourneyEvent>> journeys_;
  std::deque<std::uint64_t> order_;
};

}  // namespace greynic::trace
