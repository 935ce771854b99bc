#pragma once

/// An on-chip cache: fully associative, random replacement, a fixed number of entries. It holds QP
/// contexts, translation entries or work-queue entries. Memory grows with the capacity and not with
/// the number of things that could be cached, so an idle QP costs nothing here.

#include <bit>
#include <cstdint>
#include <vector>

#include "random.h"

namespace greynic::twin {

class Cache {
 public:
  Cache() = default;
  /// `population`: how many distinct ids there will be. When all fit, every touch is a hit: such a
  /// cache is warm before a measurement begins.
  Cache(std::uint64_t capacity, std::uint64_t population)
      : always_(population <= capacity), capacity_(always_ ? 0 : capacity) {
    if (always_) return;
    buckets_.assign(std::bit_ceil(2 * capacity_), Bucket{});
    mask_ = buckets_.size() - 1;
    owners_.reserve(capacity_);
  }

  [[nodiscard]] bool never_misses() const { return always_; }

  [[nodiscard]] bool contains(std::uint64_t id) const { return always_ || find(id) != kNowhere; }

  /// True on a hit; on a miss the entry is brought in, in place of a random one when full.
  bool touch(std::uint64_t id, Random& random) {
    if (always_) return true;
    if (find(id) != kNowhere) return true;
    std::uint32_t slot = 0;
    if (owners_.size() < capacity_) {
      slot = static_cast<std::uint32_t>(owners_.size());
      owners_.push_back(0);
    } else {
      slot = random.below(static_cast<std::uint32_t>(capacity_));
      erase_bucket(find(owners_[slot]));
    }
    owners_[slot] = id;
    std::uint64_t at = home(id);
    while (buckets_[at].used) at = (at + 1) & mask_;
    buckets_[at] = {id, slot, true};
    return false;
  }

 private:
  struct Bucket {
    std::uint64_t id = 0;
    std::uint32_t slot = 0;
    bool used = false;
  };
  static constexpr std::uint64_t kNowhere = ~0ULL;

  [[nodiscard]] std::uint64_t home(std::uint64_t id) const { return split_mix(id) & mask_; }
  [[nodiscard]] std::uint64_t find(std::uint64_t id) const {
    for (std::uint64_t at = home(id); buckets_[at].used; at = (at + 1) & mask_) {
      if (buckets_[at].id == id) return at;
    }
    return kNowhere;
  }
  /// Linear probing without tombstones: later entries of the run move up.
  void erase_bucket(std::uint64_t hole) {
    for (std::uint64_t at = (hole + 1) & mask_; buckets_[at].used; at = (at + 1) & mask_) {
      const std::uint64_t wanted = home(buckets_[at].id);
      if (((at - wanted) & mask_) >= ((at - hole) & mask_)) {
        buckets_[hole] = buckets_[at];
        hole = at;
      }
    }
    buckets_[hole].used = false;
  }

  bool always_ = true;
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> owners_;
};

}  // namespace greynic::twin
