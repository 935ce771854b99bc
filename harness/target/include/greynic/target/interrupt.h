#pragma once

/// Ctrl-C in order: while a guard lives, SIGINT and SIGTERM only set a flag, which long work looks
/// at between two steps. A second Ctrl-C ends the program at once, as without a guard.

namespace greynic::target {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// True once a signal came, until the outermost guard ends.
[[nodiscard]] bool interrupted();

}  // namespace greynic::target
