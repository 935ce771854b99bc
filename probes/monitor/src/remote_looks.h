#pragma once

/// Looks at hosts behind a wire: an answer takes as long as the other side wants. Credits say whom
/// to ask next and when, and a few threads wait for the answers, so that a host that hangs costs one
/// of them for a while and no other host its turn.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "greynic/monitor/credits.h"

namespace greynic::monitor {

class RemoteLooks {
 public:
  /// `look` asks a host and waits for its answer; false when none came. Called by `threads` threads,
  /// never twice at once for one host.
  RemoteLooks(const CreditOptions& credits, std::size_t threads,
              std::function<bool(std::uint32_t host)> look);
  ~RemoteLooks();  ///< waits for the answers that are due
  RemoteLooks(const RemoteLooks&) = delete;
  RemoteLooks& operator=(const RemoteLooks&) = delete;

  // By one thread.

  void add(const Credits::Job& job) { credits_.add(job); }
  /// Asks whom the credits allow, and gives the hosts that have answered since the last turn.
  [[nodiscard]] std::vector<std::uint32_t> turn();
  /// Until an answer comes, a job may go, or this time.
  void wait_until_ns(std::int64_t steady_ns);

 private:
  struct Asked {
    Credits::Job job;
    double begin_ns = 0;
    double delay_ns = 0;  ///< 0: no answer came
  };
  void serve();

  std::function<bool(std::uint32_t)> look_;
  Credits credits_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable asked_changed_, answered_changed_;
  std::deque<Asked> asked_;
  std::vector<Asked> answered_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace greynic::monitor
