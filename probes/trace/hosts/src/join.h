#pragma once

/// Hops between hosts, from what each host has seen by itself.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "greynic/trace/tracer.h"

namespace greynic::trace_hosts {

/// A flow's name without the VNI: a host that sees the tunnel from outside may not know it.
[[nodiscard]] std::string flow_key(const std::string& flow);

/// Journeys of all hosts, whose packets are known again by what headers say of them.
class Matcher {
 public:
  /// `ns` by our clock, and how far it may be off.
  void add(std::size_t host, const trace::JourneyEvent& event, std::int64_t ns, double error_ns);
  /// Joins what came to its end before `ns`: to be called with a time some seconds ago.
  void settle(std::int64_t ns);

  struct Key {
    std::string flow;
    trace::Point from, to;
    auto operator<=>(const Key&) const = default;
  };
  struct Between {
    trace::FlowName flow;
    trace::DelayHistogram delays;
    std::uint64_t packets = 0;
    double sum_ns = 0, max_ns = 0, error_ns = 0;
  };
  [[nodiscard]] const std::map<Key, Between>& found() const { return found_; }
  /// Packets that looked like others on the same host, and were left out.
  [[nodiscard]] std::uint64_t ambiguous() const { return ambiguous_; }

 private:
  struct Journey {
    std::size_t host = 0;
    trace::FlowName flow;
    trace::Point first, last;
    std::int64_t first_ns = 0, last_ns = 0;
    double error_ns = 0;
    std::uint64_t identity = 0;
  };
  void join(std::vector<Journey>& journeys);

  std::map<std::size_t, std::map<std::uint64_t, Journey>> open_;  ///< by host, and number there
  std::map<Key, Between> found_;
  std::uint64_t ambiguous_ = 0;
};

/// What left one host and entered another, by counting: one hop for each flow that did both, with those
/// that were lost. `reports` have the names of their points already.
[[nodiscard]] std::vector<trace::Hop> counted_between(const std::vector<trace::Report>& reports);

}  // namespace greynic::trace_hosts
