#pragma once

/// WRITE or READ for large pieces. A READ is posted and completed by the receiver's broker, so it
/// takes work away from a busy sender. It also holds the sender's memory for a round trip more, and
/// takes the receiver's only when that asks: so a sender that is short of memory WRITES, and a
/// receiver that is has its bytes READ. The choice changes only when both ends differ by more than
/// kMargin, and changes back when they differ by more than half of it the other way round: loads
/// that tremble do not flip it.

#include "greynic/broker/core.h"

namespace greynic::broker {

class VerbChoice {
 public:
  static constexpr double kMargin = 0.2;

  /// True: the choice has changed.
  bool hear(const Load& own, const Load& far) {
    own_ = own;
    far_ = far;
    const double excess = (own.processor - far.processor) - (own.memory - far.memory);
    const bool before = read_;
    if (excess > kMargin) read_ = true;
    if (excess < -kMargin / 2) read_ = false;
    return read_ != before;
  }
  [[nodiscard]] VerbRule rule() const { return read_ ? VerbRule::kRead : VerbRule::kWrite; }
  [[nodiscard]] const Load& own() const { return own_; }
  [[nodiscard]] const Load& far() const { return far_; }

 private:
  Load own_, far_;
  bool read_ = false;
};

}  // namespace greynic::broker
