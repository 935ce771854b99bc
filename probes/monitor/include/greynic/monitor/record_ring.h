#pragma once

/// Records from one thread to another, without a lock: one may put, one may take. A record lies in
/// one piece, so that it is made and read in place.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace greynic::monitor {

class RecordRing {
 public:
  /// `words` of 8 bytes, rounded up to a power of two.
  explicit RecordRing(std::size_t words)
      : size_(std::bit_ceil(words)), words_(std::make_unique<std::uint64_t[]>(size_)) {}

  /// Room for a record; empty when there is none now. put() hands it over.
  [[nodiscard]] std::span<std::uint64_t> room(std::size_t words) {
    const std::size_t at = put_ & (size_ - 1);
    const std::size_t skipped = at + words + 1 > size_ ? size_ - at : 0;
    const std::size_t needed = skipped + words + 1;
    if (needed > size_) return {};
    if (put_ + needed - taken_seen_ > size_) {
      taken_seen_ = taken_.load(std::memory_order_acquire);
      if (put_ + needed - taken_seen_ > size_) return {};
    }
    if (skipped > 0) {
      words_[at] = kSkip;
      put_ += skipped;
    }
    words_[put_ & (size_ - 1)] = words;
    return {&words_[(put_ & (size_ - 1)) + 1], words};
  }
  void put(std::span<const std::uint64_t> record) {
    put_ += record.size() + 1;
    shown_.store(put_, std::memory_order_release);
  }

  /// The oldest record; empty when there is none. drop() gives its room back.
  [[nodiscard]] std::span<const std::uint64_t> front() {
    if (take_ == shown_seen_) shown_seen_ = shown_.load(std::memory_order_acquire);
    if (take_ == shown_seen_) return {};
    if (words_[take_ & (size_ - 1)] == kSkip) take_ += size_ - (take_ & (size_ - 1));
    return {&words_[(take_ & (size_ - 1)) + 1], words_[take_ & (size_ - 1)]};
  }
  void drop(std::span<const std::uint64_t> record) {
    take_ += record.size() + 1;
    taken_.store(take_, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kSkip = UINT64_MAX;
  std::size_t size_;
  std::unique_ptr<std::uint64_t[]> words_;
  alignas(64) std::atomic<std::uint64_t> shown_{0};
  std::uint64_t put_ = 0, taken_seen_ = 0;  // of the one that puts
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  std::uint64_t take_ = 0, shown_seen_ = 0;  // of the one that takes
};

}  // namespace greynic::monitor
