#pragma once

/// The processing units that have a packet in work, in the order in which they will be done: a ring
/// that is kept sorted. Units take about as long as each other, so whoever begins last is nearly
/// always done last: a newcomer goes in from the back and seldom passes anybody, whatever the
/// number of units. A heap or a tournament compares on each of its levels, and branches at random.

#include <bit>
#include <cstdint>
#include <vector>

#include "stage.h"

namespace greynic::twin {

class UnitQueue {
 public:
  UnitQueue() = default;
  /// Of units 0 to count - 1, each in it at most once.
  explicit UnitQueue(std::uint32_t count)
      : ring_(std::bit_ceil(count)), mask_(std::bit_ceil(count) - 1) {}

  /// When the first is done; kNever: no unit has anything to do.
  [[nodiscard]] Time time() const { return head_ == tail_ ? kNever : at(head_).time; }
  /// Who that is; of equal ones that of the lowest number.
  [[nodiscard]] std::uint32_t unit() const { return at(head_).unit; }

  void pop() { ++head_; }
  /// `unit` is not in the queue.
  void push(std::uint32_t unit, Time time) {
    std::uint32_t hole = tail_++;
    for (; hole != head_ && later(at(hole - 1), unit, time); --hole) at(hole) = at(hole - 1);
    at(hole) = {time, unit};
  }

 private:
  struct Entry {
    Time time = 0;
    std::uint32_t unit = 0;
  };
  [[nodiscard]] static bool later(const Entry& entry, std::uint32_t unit, Time time) {
    return entry.time > time || (entry.time == time && entry.unit > unit);
  }
  [[nodiscard]] Entry& at(std::uint32_t index) { return ring_[index & mask_]; }
  [[nodiscard]] const Entry& at(std::uint32_t index) const { return ring_[index & mask_]; }

  std::vector<Entry> ring_;
  std::uint32_t mask_ = 0;
  std::uint32_t head_ = 0, tail_ = 0;  ///< never wrapped: their difference is how many are in it
};

}  // namespace greynic::twin
