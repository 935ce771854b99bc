#pragma once

/// The traffic driver: what the two ends of a connection do during a run, and what they report.
///
/// run_requests drives an endpoint for a time and measures. An Answerer serves the other end: it
/// takes what arrives, checks it, and in latency mode sends it back. Both poll in plan.thread_count
/// threads of their own and end by themselves: every wait has a limit, and the report says what was
/// waited for in vain.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/histogram.h"
#include "greynic/core/observation.h"
#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {

/// Why a run ended early: the verbs name of a completion status, or what did not come in time.
struct Failure {
  Outcome outcome = Outcome::kFailed;
  std::string reason;
};

struct RequestReport {
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::vector<std::uint64_t> completed_by_lane;
  double messages_per_second = 0.0;
  std::optional<double> rate_standard_error;
  LatencyHistogram latency;  ///< closed loop: post to completion; open loop: from when it was due
  SteadyState steady;
  double cpu_ns_per_message = 0.0;  ///< user and system time of the requesting threads
  std::uint64_t payload_errors = 0;
  std::uint64_t lost = 0;  ///< latency mode: pings without an answer
  std::optional<Failure> failure;
};

struct AnswerReport {
  std::uint64_t received = 0;
  std::uint64_t payload_errors = 0;
  std::optional<Failure> failure;
};

/// Drives the endpoint for about `duration`: a tenth is warm-up, the rest is measured. `stop` ends
/// it early. In latency mode latency is half a round trip (READ and atomics: the whole).
[[nodiscard]] RequestReport run_requests(Endpoint& endpoint, std::chrono::nanoseconds duration,
                                         const std::atomic<bool>& stop);

class Answerer {
 public:
  explicit Answerer(Endpoint& endpoint);
  ~Answerer();
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;

  void start();
  /// Waits until nothing has arrived for a moment, stops the threads, checks what WRITE left.
  /// `completed_by_lane` are the messages that the other end saw completed.
  [[nodiscard]] AnswerReport finish(const std::vector<std::uint64_t>& completed_by_lane);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace greynic::verbs
