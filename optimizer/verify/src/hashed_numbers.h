#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace greynic::verify {

/// Numbers 0, 1, 2... for things that are looked for by their hash.
class HashedNumbers {
 public:
  /// The number of the thing that `same` knows; `fresh` when it is new, for which it stands from now
  /// on.
  template <typename Same>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t fresh, const Same& same) {
    if (count_ * 2 >= slots_.size()) grow();
    const auto mark = static_cast<std::uint32_t>(hash >> 32 ^ hash);
    for (std::size_t at = mark;; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.number == kFree) {
        slot = {mark, fresh};
        ++count_;
        return fresh;
      }
      if (slot.mark == mark && same(slot.number)) return slot.number;
    }
  }

  /// Does `same` know one of these things?
  template <typename Same>
  [[nodiscard]] bool holds(std::uint64_t hash, const Same& same) const {
    if (slots_.empty()) return false;
    const auto mark = static_cast<std::uint32_t>(hash >> 32 ^ hash);
    for (std::size_t at = mark;; ++at) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.number == kFree) return false;
      if (slot.mark == mark && same(slot.number)) return true;
    }
  }

  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;
  struct Slot {
    std::uint32_t mark = 0;
    std::uint32_t number = kFree;
  };
  void grow();
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// A step of a hash over several numbers.
[[nodiscard]] inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

}  // namespace greynic::verify
