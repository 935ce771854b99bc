#pragma once

/// Sends points to an InfluxDB in the background. Whoever measures never waits for it: lines queue
/// up, go out in batches, and are sent again while the database is down. What does not fit into the
/// queue, or what the database refuses, is lost, and counted.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "greynic/core/result.h"

namespace greynic::http {

struct InfluxOptions {
  std::size_t batch_lines = 5000;
  std::chrono::milliseconds batch_within{1000};  ///< what is queued goes out by then
  std::size_t queue_bytes = 64 << 20;            ///< beyond, the oldest lines are lost
};

class InfluxSender {
 public:
  struct Counts {
    std::uint64_t sent = 0;  ///< lines that the database took
    std::uint64_t lost = 0;
    std::uint64_t waiting = 0;
    std::uint64_t failures = 0;  ///< of requests, those repeated among them
    std::string last_failure;    ///< empty after a request that went well
  };

  /// `url`: "http://HOST:8086/DATABASE" for version 1; with a path and a query, such as
  /// ".../api/v2/write?org=lab&bucket=nics", it is used as it stands. "http://USER:PASSWORD@HOST"
  /// signs in; so does a token in the environment, INFLUX_TOKEN. kBadInput for what is no such URL.
  /// The database need not be up.
  [[nodiscard]] static Result<std::unique_ptr<InfluxSender>> open(
      const std::string& url, const InfluxOptions& options = {});
  ~InfluxSender();  ///< drops what waits: call flush() before
  InfluxSender(const InfluxSender&) = delete;
  InfluxSender& operator=(const InfluxSender&) = delete;

  /// One or more whole lines, as outlets::InfluxPoint::line gives them.
  void send(std::string lines);
  /// Sends what waits. False when some still waits after that time, or soon after `ending` is set.
  bool flush(std::chrono::milliseconds patience, const std::atomic<bool>* ending = nullptr);
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  explicit InfluxSender(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  ///< its thread outlives us while it connects to nobody
};

}  // namespace greynic::http
