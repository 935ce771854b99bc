#pragma once

/// The processing units that have a packet in work, in the order in which they will be done. Those
/// of one RNIC stand in a ring that is kept sorted: they take about as long as each other, so
/// whoever begins last is nearly always done last, goes in from the back and seldom passes anybody,
/// whatever their number. RNICs do not keep step with one another: a tournament of their firsts, a
/// complete binary tree of winners, finds the earliest.

#include <bit>
#include <cstdint>
#include <vector>

#include "stages/stage.h"

namespace greynic::twin {

class UnitQueue {
 public:
  struct Unit {
    std::uint32_t nic = 0, index = 0;
  };

  UnitQueue() = default;
  UnitQueue(std::uint32_t nics, std::uint32_t units_of_each)
      : mask_(std::bit_ceil(units_of_each) - 1),
        entries_(std::size_t{nics} * (mask_ + 1)),
        leaves_(std::bit_ceil(nics)),
        winners_(2 * std::size_t{leaves_}) {
    for (std::uint32_t nic = 0; nic < nics; ++nic) rings_.push_back({.begin = nic * (mask_ + 1)});
  }

  /// When the first is done; kNever: no unit has anything to do.
  [[nodiscard]] Time time() const { return first_.time; }
  /// Who that is; of equal ones that of the lowest RNIC, and there of the lowest index.
  [[nodiscard]] Unit first() const {
    return {nic_of(first_), static_cast<std::uint32_t>(first_.unit)};
  }

  void pop() {
    const std::uint32_t nic = nic_of(first_);
    Ring& ring = rings_[nic];
    ++ring.head;
    play(nic, ring.head == ring.tail ? Entry() : at(ring, ring.head));
  }
  /// `unit` is not in the queue.
  void push(Unit unit, Time time) {
    const Entry entry{time, std::uint64_t{unit.nic} << 32 | unit.index};
    Ring& ring = rings_[unit.nic];
    std::uint32_t hole = ring.tail++;
    for (; hole != ring.head && before(entry, at(ring, hole - 1)); --hole) {
      at(ring, hole) = at(ring, hole - 1);
    }
    at(ring, hole) = entry;
    if (hole == ring.head) play(unit.nic, entry);
  }

 private:
  struct Entry {
    Time time = kNever;
    // RNIC and index as one number: the CPU takes long to read back as one what was written as two.
    std::uint64_t unit = 0;
  };
  struct Ring {
    std::uint32_t begin = 0;           ///< of its entries
    std::uint32_t head = 0, tail = 0;  ///< never wrapped: their difference is how many are in it
  };
  [[nodiscard]] static bool before(const Entry& a, const Entry& b) {
    return a.time < b.time || (a.time == b.time && a.unit < b.unit);
  }
  [[nodiscard]] static std::uint32_t nic_of(const Entry& entry) {
    return static_cast<std::uint32_t>(entry.unit >> 32);
  }
  [[nodiscard]] Entry& at(const Ring& ring, std::uint32_t index) {
    return entries_[ring.begin + (index & mask_)];
  }
  /// Another one is the first of its RNIC: who wins now.
  void play(std::uint32_t nic, Entry entry) {
    for (std::uint32_t place = leaves_ + nic; place > 1; place /= 2) {
      winners_[place] = entry;
      if (before(winners_[place ^ 1U], entry)) entry = winners_[place ^ 1U];
    }
    first_ = entry;
  }

  std::uint32_t mask_ = 0;
  std::vector<Entry> entries_;
  std::vector<Ring> rings_;
  std::uint32_t leaves_ = 1;
  std::vector<Entry> winners_;  ///< the root, which is at 1, is kept in first_ alone
  Entry first_;
};

}  // namespace greynic::twin
