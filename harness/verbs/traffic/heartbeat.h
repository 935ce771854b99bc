#pragma once

/// Keeps a thread from sleeping for ever in a system call that has no time limit. A signal in each
/// period does nothing but interrupt the call (EINTR). Asking poll(2) for a limit instead would
/// cost one more system call each time.

#include <chrono>
#include <ctime>

namespace greynic::verbs {

class Heartbeat {
 public:
  /// For the calling thread.
  explicit Heartbeat(std::chrono::milliseconds period);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  /// False when the system has no timer left: nothing would end a sleep.
  [[nodiscard]] bool beats() const { return beats_; }

 private:
  timer_t timer_{};
  bool beats_ = false;
};

}  // namespace greynic::verbs
