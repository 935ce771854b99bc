#pragma once

/// Keeps a thread from sleeping for ever in a system call that knows no limit: a signal comes to it
/// in each period, does nothing, and interrupts the call (EINTR). A limit of its own, as poll(2)
/// has one, would cost the call once more each time.

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
