#pragma once

/// Events in order of time, and of insertion where times are equal, so that a run is the same every
/// time. A 4-ary heap: the queue is short (messages and requests under way), since packets that
/// follow one another need no event of their own.

#include <cstdint>
#include <vector>

#include "stages/stage.h"

namespace greynic::twin {

struct Event {
  Time time;
  std::uint32_t order;
  std::uint32_t subject;
  std::uint32_t count;
  std::uint8_t kind;

  [[nodiscard]] bool before(const Event& other) const {
    return time < other.time || (time == other.time && order < other.order);
  }
};

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] Time next_time() const { return heap_.empty() ? kNever : heap_.front().time; }

  void push(Time time, std::uint8_t kind, std::uint32_t subject, std::uint32_t count = 1) {
    const Event event{time, order_++, subject, count, kind};
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!event.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  /// In no order.
  [[nodiscard]] const std::vector<Event>& all() const { return heap_; }

  Event pop() {
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    if (n == 0) return top;
    std::size_t hole = 0;
    for (std::size_t first = 1; first < n; first = 4 * hole + 1) {
      std::size_t least = first;
      const std::size_t end = std::min(first + 4, n);
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].before(heap_[least])) least = child;
      }
      if (!heap_[least].before(last)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
    return top;
  }

 private:
  std::vector<Event> heap_;
  std::uint32_t order_ = 0;
};

}  // namespace greynic::twin
