#pragma once

#include <cstdint>
#include <cstdlib>

namespace greynic::monitor {

/// The time of day by a clock that never steps: between two looks as much time passes as really
/// has. A step of more than a second is taken over, and told.
class DayClock {
 public:
  /// `real_ns` may step, `steady_ns` does not.
  std::int64_t now(std::int64_t real_ns, std::int64_t steady_ns, std::int64_t& stepped_by) {
    const std::int64_t expected = base_ + steady_ns;
    stepped_by = base_ != 0 && std::abs(real_ns - expected) > kStepNs ? real_ns - expected : 0;
    if (base_ == 0 || stepped_by != 0) base_ = real_ns - steady_ns;
    return base_ + steady_ns;
  }

 private:
  static constexpr std::int64_t kStepNs = 1'000'000'000;
  std::int64_t base_ = 0;
};

}  // namespace greynic::monitor
