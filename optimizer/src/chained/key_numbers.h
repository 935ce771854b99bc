#pragma once

/// Numbers for keys, in order of first appearance: open addressing, at most half full. Made to be
/// used again and again: restart() takes the keys out without touching the slots.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "src/ternary.h"

namespace greynic::optimizer::chained {

class KeyNumbers {
 public:
  /// Room for so many keys.
  explicit KeyNumbers(std::size_t most = 0) { restart(most); }

  void restart(std::size_t most) {
    count_ = 0;
    ++now_;
    const std::size_t needed = std::bit_ceil(std::max<std::size_t>(4, most * 2));
    if (slots_.size() < needed) slots_.resize(needed);
    // Few keys stay close together in memory, however many there were before.
    last_ = needed - 1;
  }
  std::uint32_t number(std::uint64_t key) {
    Slot& slot = find(key);
    if (slot.since != now_) slot = {key, count_++, now_};
    return slot.number;
  }
  [[nodiscard]] std::uint32_t lookup(std::uint64_t key) {
    const Slot& slot = find(key);
    return slot.since == now_ ? slot.number : kNoRow;
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
    std::uint32_t since = 0;
  };
  Slot& find(std::uint64_t key) {
    for (std::size_t i = key & last_;; i = (i + 1) & last_) {
      if (slots_[i].since != now_ || slots_[i].key == key) return slots_[i];
    }
  }
  std::vector<Slot> slots_;
  std::size_t last_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t now_ = 0;
};

}  // namespace greynic::optimizer::chained
