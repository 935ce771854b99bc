#pragma once

/// Events in the order of EventQueue, for runs in which many are under way: a wheel of buckets of
/// equal width in time. A bucket is a sorted list, which seldom holds more than one event, and a bit
/// says whether it holds any; what lies beyond the wheel waits in a heap. The wheel is laid out anew
/// when lists get long or too much lies beyond. So an event costs the same with ten others as with
/// ten thousand, but for the CPU's own caches, and a third of what it costs in a heap.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "stages/event_queue.h"

namespace greynic::twin {

class CalendarQueue {
 public:
  CalendarQueue() { lay_out(kFewest, 1); }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Time next_time() const { return front_time_; }

  void push(Time time, std::uint8_t kind, std::uint32_t subject, std::uint32_t count = 1) {
    ++size_;
    place({time, order_++, subject, count, kind});
    if (longest_walk_ > kLongWalk) [[unlikely]]
      tune();
  }
  /// Needs one to be there.
  Event pop() {
    if (front_ == kEnd) [[unlikely]]
      go_beyond();
    const std::uint32_t id = front_;
    Node& node = nodes_[id];
    const Event event = node.event;
    base_ = front_bucket_;
    const std::size_t place = base_ & mask_;
    lists_[place].head = node.next;
    filled_[place / 64] ^= std::uint64_t{node.next == kEnd} << (place % 64);
    node.next = std::exchange(free_, id);
    --size_;
    if (far_bucket_ < base_ + lists_.size()) [[unlikely]]
      bring_near();
    find_front();
    if (--until_tuned_ == 0) [[unlikely]]
      tune();
    return event;
  }
  /// Calls for the next events of the wheel, `most` at most, in their order.
  template <typename Call>
  void look_ahead(std::size_t most, const Call& call) const {
    std::uint64_t bucket = front_bucket_;
    for (std::uint32_t id = front_; id != kEnd && most > 0; --most) {
      const Node& node = nodes_[id];
      call(node.event);
      id = node.next;
      if (id != kEnd) continue;
      bucket = next_filled(bucket + 1);
      if (bucket == kNone) return;
      id = lists_[bucket & mask_].head;
    }
  }

 private:
  struct alignas(32) Node {
    Event event;
    std::uint32_t next;
  };
  struct List {  ///< of nothing: what is in it does not count
    std::uint32_t head, tail;
  };
  static constexpr std::size_t kFewest = 64, kMost = 1 << 20;
  static constexpr std::uint32_t kEnd = ~0U;     ///< of a list
  static constexpr std::uint64_t kNone = ~0ULL;  ///< no bucket
  static constexpr std::uint32_t kLongWalk = 64;
  /// Buckets in a ns; events of one time stay together however narrow their bucket is.
  static constexpr double kFinest = 4096;

  static bool later(const Event& a, const Event& b) { return b.before(a); }
  /// Widths are powers of two, so that times convert without rounding.
  [[nodiscard]] std::uint64_t bucket_of(Time time) const {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::min(time * per_ns_, 0x1p62)));
  }
  void place(const Event& event) {
    const std::uint64_t bucket = std::max(bucket_of(event.time), base_);
    if (bucket < base_ + lists_.size()) [[likely]]
      return file(event, bucket);
    ++spilled_;
    far_.push_back(event);
    std::push_heap(far_.begin(), far_.end(), later);
    far_bucket_ = std::min(far_bucket_, bucket);
    if (front_ == kEnd) front_time_ = far_.front().time;
  }
  void file(const Event& event, std::uint64_t bucket) {
    const std::uint32_t id = take_node();
    Node& node = nodes_[id];
    node = {event, kEnd};
    const std::size_t place = bucket & mask_;
    List& list = lists_[place];
    const std::uint64_t bit = 1ULL << (place % 64);
    if ((filled_[place / 64] & bit) == 0) {
      filled_[place / 64] |= bit;
      list = {id, id};
    } else if (event.time >= nodes_[list.tail].event.time) {
      nodes_[list.tail].next = id;
      list.tail = id;
    } else if (event.time < nodes_[list.head].event.time) {
      node.next = list.head;
      list.head = id;
    } else {
      sort_in(node, id, list.head);
    }
    if (event.time >= front_time_) return;
    front_ = id;
    front_bucket_ = bucket;
    front_time_ = event.time;
  }
  /// Behind the first of a list and before its last.
  void sort_in(Node& node, std::uint32_t id, std::uint32_t before) {
    std::uint32_t steps = 1;
    for (; nodes_[nodes_[before].next].event.time <= node.event.time; ++steps) {
      before = nodes_[before].next;
    }
    node.next = nodes_[before].next;
    nodes_[before].next = id;
    walked_ += steps;
    longest_walk_ = std::max(longest_walk_, steps);
  }
  [[nodiscard]] std::uint32_t take_node() {
    if (free_ == kEnd) [[unlikely]] {
      nodes_.emplace_back();
      return static_cast<std::uint32_t>(nodes_.size()) - 1;
    }
    return std::exchange(free_, nodes_[free_].next);
  }

  /// The first bucket from `from` on that has an event; kNone: there is none.
  [[nodiscard]] std::uint64_t next_filled(std::uint64_t from) const {
    const std::size_t place = from & mask_;
    std::size_t word = place / 64;
    std::uint64_t bits = filled_[word] >> (place % 64);
    std::uint64_t bucket = from;
    if (bits == 0) {
      const std::uint64_t end = base_ + lists_.size();
      bucket -= place % 64;
      do {
        word = (word + 1) & (filled_.size() - 1);
        bits = filled_[word];
        bucket += 64;
      } while (bits == 0 && bucket < end);
      if (bits == 0) return kNone;
    }
    bucket += static_cast<std::uint64_t>(std::countr_zero(bits));
    return bucket < base_ + lists_.size() ? bucket : kNone;
  }
  void find_front() {
    front_bucket_ = next_filled(base_);
    if (front_bucket_ == kNone) [[unlikely]] {
      front_ = kEnd;
      front_time_ = far_.empty() ? kNever : far_.front().time;
      return;
    }
    front_ = lists_[front_bucket_ & mask_].head;
    front_time_ = nodes_[front_].event.time;
  }
  /// Nothing is left in the wheel: it goes on where the next event is.
  [[gnu::noinline]] void go_beyond() {
    base_ = far_bucket_;
    bring_near();
    find_front();
  }
  [[gnu::noinline]] void bring_near() {
    while (!far_.empty() && bucket_of(far_.front().time) < base_ + lists_.size()) {
      std::pop_heap(far_.begin(), far_.end(), later);
      file(far_.back(), bucket_of(far_.back().time));
      far_.pop_back();
    }
    far_bucket_ = far_.empty() ? kNone : bucket_of(far_.front().time);
  }

  /// Few walks along lists, and few events beyond the wheel.
  [[gnu::noinline]] void tune() {
    const std::uint32_t pushes = order_ - order_when_tuned_;
    std::size_t buckets = lists_.size();
    double per_ns = per_ns_;
    if (walked_ > pushes / 8) {
      per_ns = std::min(kFinest, per_ns * (walked_ / 4 > pushes ? 8 : 2));
    } else if (spilled_ > pushes / 8) {
      if (buckets < std::min(kMost, 4 * size_)) {
        buckets = std::min(kMost, std::bit_ceil(8 * size_));
      } else {
        per_ns = std::max(1 / kFinest, per_ns / 2);
      }
    } else if (buckets > std::max(kFewest, 32 * size_)) {
      buckets /= 2;
    }
    if (per_ns == per_ns_ && buckets == lists_.size()) return begin_count();
    std::vector<Event> all;
    look_ahead(size_, [&](const Event& event) { all.push_back(event); });
    std::ranges::sort(far_, [](const Event& a, const Event& b) { return a.before(b); });
    all.insert(all.end(), far_.begin(), far_.end());
    const Time now = static_cast<double>(base_) / per_ns_;
    lay_out(buckets, per_ns);
    base_ = bucket_of(now);
    for (const Event& event : all) place(event);
    begin_count();
    find_front();
  }
  void begin_count() {
    until_tuned_ = std::max(4 * kFewest, size_);
    order_when_tuned_ = order_;
    walked_ = spilled_ = longest_walk_ = 0;
  }
  void lay_out(std::size_t buckets, double per_ns) {
    per_ns_ = per_ns;
    mask_ = buckets - 1;
    lists_.assign(buckets, {});
    filled_.assign(buckets / 64, 0);
    nodes_.clear();
    far_.clear();
    free_ = front_ = kEnd;
    far_bucket_ = front_bucket_ = kNone;
    front_time_ = kNever;
    begin_count();
  }

  // What every event looks at.
  std::uint64_t base_ = 0;  ///< the wheel begins with this bucket, that of the last event
  std::uint64_t mask_ = 0;  ///< buckets less one
  double per_ns_ = 0;       ///< buckets
  Time front_time_ = kNever;
  std::uint64_t front_bucket_ = kNone;
  std::uint32_t front_ = kEnd;        ///< the next event; kEnd: none, or it is beyond the wheel
  std::uint32_t free_ = kEnd;         ///< nodes
  std::uint64_t far_bucket_ = kNone;  ///< of the first event beyond the wheel
  std::size_t size_ = 0;
  std::uint64_t until_tuned_ = 0;  ///< events
  std::uint32_t order_ = 0;
  std::vector<List> lists_;
  std::vector<std::uint64_t> filled_;  ///< which lists have some, a bit each
  std::vector<Node> nodes_;
  std::vector<Event> far_;  ///< beyond the wheel, a heap
  // Since the last look at how long lists are.
  std::uint32_t order_when_tuned_ = 0, walked_ = 0, spilled_ = 0, longest_walk_ = 0;
};

}  // namespace greynic::twin
