#pragma once

/// A progress bar on stderr with the time left. Nothing is drawn when stderr is not a terminal, nor
/// before the work has taken two seconds.

#include <chrono>
#include <cstdint>
#include <string>

#include "greynic/loop/talk.h"

namespace greynic::cli {

class Progress {
 public:
  /// `what` names the work ("measuring"); `total` is in any unit, the same as of update().
  Progress(std::string what, double total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// How much of the total is done; `note` stands behind the bar. Cheap: redraws at most 5 times a
  /// second.
  void update(double done, const std::string& note = {});
  /// Removes the bar, so that other lines can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  double total_;
  double first_done_ = -1.0;  ///< of the first update: a resumed run did not do it now
  Clock::time_point start_;
  Clock::time_point drawn_{};
  bool terminal_;
  bool visible_ = false;
};

/// Prints what a step says on stderr and draws its progress there. The bar goes with the object.
[[nodiscard]] loop::Talk terminal_talk();

}  // namespace greynic::cli
