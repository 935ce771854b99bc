#pragma once

/// How long to wait for something that is away: up to a limit, once. After a wait in vain each
/// later asking looks once, until the thing is back. So a peer that stays away costs a campaign one
/// wait, not one for each configuration.

#include <chrono>
#include <functional>

namespace greynic::verbs {

class Patience {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;

  explicit Patience(std::chrono::nanoseconds limit, Clock clock = steady_clock)
      : limit_(limit), clock_(std::move(clock)) {}

  /// Before the first look.
  void begin() { end_ = clock_() + limit_; }
  /// After a look that found nothing: is there to be another?
  [[nodiscard]] bool look_again() {
    in_vain_ = in_vain_ || clock_() >= end_;
    return !in_vain_;
  }
  void found() { in_vain_ = false; }
  /// It was away for the whole limit and has not been found since.
  [[nodiscard]] bool in_vain() const { return in_vain_; }

 private:
  static std::chrono::nanoseconds steady_clock() {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  std::chrono::nanoseconds limit_;
  Clock clock_;
  std::chrono::nanoseconds end_{};
  bool in_vain_ = false;
};

}  // namespace greynic::verbs
