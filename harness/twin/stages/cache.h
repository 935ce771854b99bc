#pragma once

/// An on-chip cache: fully associative, random replacement, a fixed number of entries. It holds QP
/// contexts, translation entries or work-queue entries. What is in it is known twice: by slot, to
/// pick a victim, and by id, to find a hit. By id it is one bit for each thing that could be cached
/// while those bits stay few enough for the CPU's own cache, and a table of the capacity's size
/// beyond. So a thing that is not cached costs a bit or nothing.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "greynic/statistics/random.h"

namespace greynic::twin {

/// A set of ids below a bound.
class IdSet {
 public:
  IdSet() = default;
  /// At most `most` ids at once, all below `bound`.
  IdSet(std::uint64_t most, std::uint64_t bound) : dense_(bound <= kDenseBound) {
    if (dense_) {
      words_.assign(bound / 64 + 1, 0);
      return;
    }
    words_.assign(std::bit_ceil(2 * most), kEmpty);
    mask_ = words_.size() - 1;
  }

  [[nodiscard]] bool contains(std::uint64_t id) const {
    if (dense_) return (words_[id / 64] >> (id % 64) & 1U) != 0;
    return words_[find(id)] == id;
  }
  void insert(std::uint64_t id) {
    if (dense_) {
      words_[id / 64] |= 1ULL << (id % 64);
    } else {
      insert_in_table(id);
    }
  }
  [[nodiscard]] bool dense() const { return dense_; }
  /// Of a dense set: `in` comes for `out`.
  void replace(std::uint64_t out, std::uint64_t in) {
    words_[out / 64] &= ~(1ULL << (out % 64));
    words_[in / 64] |= 1ULL << (in % 64);
  }
  void erase(std::uint64_t id) {
    if (dense_) {
      words_[id / 64] &= ~(1ULL << (id % 64));
    } else {
      erase_from_table(id);
    }
  }

 private:
  static constexpr std::uint64_t kDenseBound = 1ULL << 23;  ///< 1 MiB of bits
  static constexpr std::uint64_t kEmpty = ~0ULL;

  [[nodiscard]] std::uint64_t home(std::uint64_t id) const {
    return statistics::split_mix(id) & mask_;
  }
  /// Where the id is, or where it would go.
  [[nodiscard]] std::uint64_t find(std::uint64_t id) const {
    std::uint64_t at = home(id);
    while (words_[at] != kEmpty && words_[at] != id) at = (at + 1) & mask_;
    return at;
  }
  // Out of line, not to burden the dense case.
  [[gnu::noinline]] void insert_in_table(std::uint64_t id) { words_[find(id)] = id; }
  /// Linear probing without tombstones: later entries of the run move up.
  [[gnu::noinline]] void erase_from_table(std::uint64_t id) {
    std::uint64_t hole = find(id);
    for (std::uint64_t at = (hole + 1) & mask_; words_[at] != kEmpty; at = (at + 1) & mask_) {
      const std::uint64_t wanted = home(words_[at]);
      if (((at - wanted) & mask_) >= ((at - hole) & mask_)) {
        words_[hole] = words_[at];
        hole = at;
      }
    }
    words_[hole] = kEmpty;
  }

  bool dense_ = true;
  std::uint64_t mask_ = 0;
  std::vector<std::uint64_t> words_;  ///< bits, or a table of ids
};

class Cache {
 public:
  Cache() = default;
  /// `population`: how many distinct ids there will be. When all fit, every touch is a hit: such a
  /// cache is warm before a measurement begins. `bound`: every id is below it. `seed`: of the
  /// victims.
  Cache(std::uint64_t capacity, std::uint64_t population, std::uint64_t bound, std::uint64_t seed)
      : always_(population <= capacity), capacity_(always_ ? 0 : capacity), victims_(seed) {
    if (always_) return;
    resident_ = IdSet(capacity_, bound);
    make_slots();
  }
  /// One whose entries can be taken away, so that it can miss even when all fit. Ids are below
  /// `population`, and the first of them are there.
  [[nodiscard]] static Cache invalidatable(std::uint64_t capacity, std::uint64_t population,
                                           std::uint64_t seed) {
    Cache cache;
    cache.victims_ = statistics::QuickRandom(seed);
    cache.always_ = false;
    cache.capacity_ = std::min(capacity, population);
    cache.resident_ = IdSet(cache.capacity_, population);
    cache.make_slots();
    cache.slot_of_.emplace();
    cache.warm_up();
    return cache;
  }

  [[nodiscard]] bool never_misses() const { return always_; }

  [[nodiscard]] bool contains(std::uint64_t id) const { return always_ || resident_.contains(id); }

  /// Brings in the first ids, as many as fit, for whoever does not care about cold caches.
  void warm_up() {
    for (std::uint64_t id = filled_; id < capacity_; ++id) put(id, filled_++);
    plain_ = resident_.dense() && !slot_of_;
  }

  /// True on a hit; on a miss the entry is brought in, in place of a random one when full. A hit is
  /// a bit to test at the place of the call.
  [[gnu::always_inline]] bool touch(std::uint64_t id) {
    if (contains(id)) return true;
    bring_in(id);
    return false;
  }

  /// Takes an entry away, when it is there; only of an invalidatable cache.
  void invalidate(std::uint64_t id) {
    const auto found = slot_of_->find(id);
    if (found == slot_of_->end()) return;
    free_.push_back(found->second);
    resident_.erase(id);
    slot_of_->erase(found);
  }

 private:
  void put(std::uint64_t id, std::uint64_t slot) {
    set_slot(slot, id);
    resident_.insert(id);
    if (slot_of_) slot_of_->emplace(id, slot);
  }
  void make_slots() {
    if (resident_.dense()) {
      by_slot_.resize(capacity_);
    } else {
      by_slot_wide_.resize(capacity_);
    }
  }
  [[nodiscard]] std::uint64_t at_slot(std::uint64_t slot) const {
    return resident_.dense() ? by_slot_[slot] : by_slot_wide_[slot];
  }
  void set_slot(std::uint64_t slot, std::uint64_t id) {
    if (resident_.dense()) {
      by_slot_[slot] = static_cast<std::uint32_t>(id);
    } else {
      by_slot_wide_[slot] = id;
    }
  }
  void bring_in(std::uint64_t id) {
    if (!plain_) [[unlikely]]
      return bring_in_slowly(id);
    std::uint32_t& slot = by_slot_[victims_.below(capacity_)];
    resident_.replace(slot, id);
    slot = static_cast<std::uint32_t>(id);
  }
  [[gnu::noinline]] void bring_in_slowly(std::uint64_t id) {
    if (slot_of_) return bring_in_tracked(id);
    std::uint64_t slot = filled_;
    if (filled_ < capacity_) {
      ++filled_;
      plain_ = filled_ == capacity_ && resident_.dense();
    } else {
      slot = victims_.below(capacity_);
      resident_.erase(at_slot(slot));
    }
    set_slot(slot, id);
    resident_.insert(id);
  }
  /// An invalidatable cache is full but for the slots that were freed.
  void bring_in_tracked(std::uint64_t id) {
    if (!free_.empty()) {
      put(id, free_.back());
      free_.pop_back();
      return;
    }
    const std::uint64_t slot = victims_.below(capacity_);
    resident_.erase(at_slot(slot));
    slot_of_->erase(at_slot(slot));
    put(id, slot);
  }

  bool always_ = true;
  std::uint64_t capacity_ = 0;
  std::uint64_t filled_ = 0;
  statistics::QuickRandom victims_;
  IdSet resident_;
  bool plain_ = false;  ///< full, dense, and nothing is ever taken away
  // One of the two, so that what is looked at in random order stays small.
  std::vector<std::uint32_t> by_slot_;       ///< of a dense set
  std::vector<std::uint64_t> by_slot_wide_;  ///< of another
  std::vector<std::uint64_t> free_;          ///< slots that were invalidated
  std::optional<std::unordered_map<std::uint64_t, std::uint64_t>> slot_of_;  ///< of invalidatable
};

}  // namespace greynic::twin
