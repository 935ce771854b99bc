#pragma once

/// SIGTERM is always answered in time. Whoever serves looks at asked() and ends in order; if that
/// takes longer than the patience, because a device, a peer or a bug holds a thread, the process
/// ends all the same, and the kernel frees what it held.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace greynic::daemon {

inline constexpr std::chrono::milliseconds kEndingPatience{1500};

class Ending {
 public:
  /// To be made before the first other thread: SIGINT and SIGTERM are blocked from here on and
  /// waited for by a thread of its own. SIGPIPE is ignored: who hangs up does not end a daemon.
  explicit Ending(std::string name, std::chrono::milliseconds patience = kEndingPatience);
  /// The end in order was in time.
  ~Ending();
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  /// Runs what has nothing to end in order, such as a daemon's start before it serves anybody: a
  /// signal before or meanwhile ends the process at once.
  template <typename Work>
  auto at_once_during(Work&& work) const {
    end_at_once(true);
    auto made = work();
    end_at_once(false);
    return made;
  }

  /// Set by the first signal. A second one ends the process at once.
  [[nodiscard]] const std::atomic<bool>& asked() const;

 private:
  void end_at_once(bool wanted) const;

  struct Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace greynic::daemon
