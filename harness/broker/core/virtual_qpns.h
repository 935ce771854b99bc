#pragma once

/// Numbers of connections: 20 bits of index, 12 bits of generation. A number that was given back is
/// given out again last, under the next generation, so that a late completion names nobody.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace greynic::broker {

template <typename T>
class VirtualQpns {
 public:
  static constexpr std::uint32_t kIndexBits = 20;
  static constexpr std::uint32_t kMost = (1U << kIndexBits) - 1;

  /// 0: all are in use.
  std::uint32_t add(std::unique_ptr<T> value) {
    std::uint32_t index = 0;
    // A number rests while others are there that were never used or have rested longer.
    if (free_.size() > kRest || slots_.size() >= kMost) {
      if (free_.empty()) return 0;
      index = free_.front();
      free_.pop_front();
    } else {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    Slot& slot = slots_[index];
    slot.value = std::move(value);
    ++size_;
    return number(index);
  }
  [[nodiscard]] T* find(std::uint32_t number_asked) const {
    const std::uint32_t index = (number_asked & kMost) - 1;
    if (index >= slots_.size() || number(index) != number_asked) return nullptr;
    return slots_[index].value.get();
  }
  void remove(std::uint32_t number_gone) {
    if (find(number_gone) == nullptr) return;
    Slot& slot = slots_[(number_gone & kMost) - 1];
    slot.value.reset();
    slot.generation = (slot.generation + 1) & 0xfff;
    free_.push_back((number_gone & kMost) - 1);
    --size_;
  }
  template <typename Call>
  void each(Call call) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].value) call(*slots_[i].value);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kRest = 64;
  struct Slot {
    std::unique_ptr<T> value;
    std::uint32_t generation = 0;
  };
  [[nodiscard]] std::uint32_t number(std::uint32_t index) const {
    return slots_[index].generation << kIndexBits | (index + 1);
  }
  std::vector<Slot> slots_;
  std::deque<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace greynic::broker
