#pragma once

/// The building blocks of every stage a packet crosses, in closed form: a packet that enters at
/// time t leaves at a time that depends only on those that entered before it. So a stage costs a
/// packet a few instructions and no event. Times are nanoseconds of virtual time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace greynic::twin {

using Time = double;
inline constexpr Time kNever = 0x1p1000;

/// One server, first come first served.
class Serial {
 public:
  /// Enters at t, is served for `service`; returns when it leaves.
  Time pass(Time t, Time service) {
    free_ = std::max(free_, t) + service;
    return free_;
  }
  [[nodiscard]] Time free() const { return free_; }
  void hold_until(Time t) { free_ = std::max(free_, t); }

 private:
  Time free_ = 0;
};

/// At most `size` inside at once, in order: the n-th may enter when the (n - size)-th has left.
/// Size 0 is no bound.
class Window {
 public:
  Window() = default;
  explicit Window(std::size_t size) : leave_(size, 0.0) {}
  [[nodiscard]] Time admit(Time t) const { return leave_.empty() ? t : std::max(t, leave_[at_]); }
  /// Call after admit, with the time at which the same item leaves.
  void enter(Time leave) {
    if (leave_.empty()) return;
    leave_[at_] = leave;
    if (++at_ == leave_.size()) at_ = 0;
  }
  /// Enters when it may, stays for `stay`; returns when it leaves.
  Time pass(Time t, Time stay) {
    const Time leave = admit(t) + stay;
    enter(leave);
    return leave;
  }
  [[nodiscard]] std::size_t size() const { return leave_.size(); }
  /// What admit looks at next.
  [[nodiscard]] const Time* next() const { return leave_.data() + at_; }

 private:
  std::vector<Time> leave_;
  std::size_t at_ = 0;
};

/// The credits of a device for reads of host memory: a window that counts them.
class ReadCredits {
 public:
  explicit ReadCredits(std::size_t count) : window_(count) {}
  [[nodiscard]] Time admit(Time t) const { return window_.admit(t); }
  void enter(Time leave) {
    window_.enter(leave);
    ++taken_;
  }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] const Time* next() const { return window_.next(); }

 private:
  Window window_;
  std::uint64_t taken_ = 0;
};

/// At most `size` inside at once, where a later one may leave before an earlier one: whoever is
/// next takes the place that is free first.
class Slots {
 public:
  Slots() = default;
  explicit Slots(std::size_t size) : leave_(size, 0.0) {}
  [[nodiscard]] Time admit(Time t) const { return leave_.empty() ? t : std::max(t, leave_[0]); }
  /// Replaces the earliest leaving time; sift-down in a min-heap.
  void enter(Time leave) {
    if (leave_.empty()) return;
    std::size_t hole = 0;
    const std::size_t n = leave_.size();
    for (std::size_t child = 1; child < n; child = 2 * hole + 1) {
      if (child + 1 < n && leave_[child + 1] < leave_[child]) ++child;
      if (leave_[child] >= leave) break;
      leave_[hole] = leave_[child];
      hole = child;
    }
    leave_[hole] = leave;
  }

 private:
  std::vector<Time> leave_;
};

}  // namespace greynic::twin
