#pragma once

#include <cstdint>
#include <vector>

#include "greynic/statistics/random.h"

namespace greynic::sharing {

/// Which contexts are on the chip. Random ones make place.
class Store {
 public:
  Store(double entries, std::uint32_t ends) : on_chip_(ends, false) {
    const auto capacity = static_cast<std::uint32_t>(entries);
    all_fit_ = ends <= capacity || capacity == 0;
    if (all_fit_) return;
    slots_.resize(capacity);
    for (std::uint32_t i = 0; i < capacity; ++i) {
      slots_[i] = i;
      on_chip_[i] = true;
    }
  }
  [[nodiscard]] bool all_fit() const { return all_fit_; }
  /// Was it there? It is now.
  bool touch(std::uint32_t end) {
    if (all_fit_ || on_chip_[end]) return true;
    std::uint32_t& slot = slots_[random_.below(slots_.size())];
    on_chip_[slot] = false;
    on_chip_[end] = true;
    slot = end;
    return false;
  }

 private:
  bool all_fit_ = true;
  std::vector<bool> on_chip_;
  std::vector<std::uint32_t> slots_;
  statistics::QuickRandom random_{1};
};

}  // namespace greynic::sharing
