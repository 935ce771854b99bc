#pragma once

/// WRITE or READ for large pieces. A READ is posted and completed by the receiver's broker, so it
/// takes work away from a busy sender. The choice changes only when the loads of both ends differ
/// by more than kMargin, and changes back when they differ by less than half of it the other way
/// round: loads that tremble do not flip it.

#include "greynic/broker/core.h"

namespace greynic::broker {

class VerbChoice {
 public:
  static constexpr double kMargin = 0.2;

  /// Loads are shares of the processor in use, 0 to 1. True: the choice has changed.
  bool hear(double own, double peer) {
    const double excess = own - peer;
    const bool before = read_;
    if (excess > kMargin) read_ = true;
    if (excess < -kMargin / 2) read_ = false;
    return read_ != before;
  }
  [[nodiscard]] VerbRule rule() const { return read_ ? VerbRule::kRead : VerbRule::kWrite; }

 private:
  bool read_ = false;
};

}  // namespace greynic::broker
