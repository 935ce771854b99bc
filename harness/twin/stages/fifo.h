#pragma once

/// A queue in one block of memory, for items that come and go at the same pace: 32 bytes when it is
/// empty, where a std::deque holds half a KiB.

#include <cstddef>
#include <utility>
#include <vector>

namespace greynic::twin {

template <typename T>
class Fifo {
 public:
  void push(T item) { items_.push_back(std::move(item)); }
  /// Needs one to be there.
  T pop() {
    T item = std::move(items_[head_++]);
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ > kWasteBound && head_ * 2 > items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return item;
  }
  [[nodiscard]] const T& front() const { return items_[head_]; }
  [[nodiscard]] T& front() { return items_[head_]; }
  [[nodiscard]] T& back() { return items_.back(); }
  [[nodiscard]] T& operator[](std::size_t i) { return items_[head_ + i]; }
  void clear() {
    items_.clear();
    head_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return items_.size() - head_; }
  [[nodiscard]] bool empty() const { return head_ == items_.size(); }

 private:
  static constexpr std::size_t kWasteBound = 1024;
  std::vector<T> items_;
  std::size_t head_ = 0;
};

}  // namespace greynic::twin
