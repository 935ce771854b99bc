#pragma once

/// Timers by the millisecond: what is due comes out in the order of its due time, whatever the
/// number of timers. Adding and taking one is a few instructions. Not thread-safe.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace greynic::monitor {

class TimerWheel {
 public:
  static constexpr std::uint64_t kSlots = 4096;
  explicit TimerWheel(std::uint64_t now_ms) : now_(now_ms) {}

  /// What is due in the past is due with the next advance().
  void add(std::uint32_t id, std::uint64_t due_ms) {
    const std::uint64_t slot = due_ms > now_ ? due_ms : now_ + 1;
    slots_[slot % kSlots].push_back({due_ms, id});
    ++count_;
  }

  /// Takes all that is due up to `now_ms`.
  void advance(std::uint64_t now_ms, std::vector<std::uint32_t>& due) {
    // After a long sleep each slot is looked at once, and no more.
    if (now_ms > now_ + kSlots) now_ = now_ms - kSlots;
    while (now_ < now_ms) {
      std::vector<Timer>& slot = slots_[++now_ % kSlots];
      std::size_t kept = 0;
      for (const Timer& timer : slot) {
        if (timer.due_ms > now_ms) {
          slot[kept++] = timer;
        } else {
          due.push_back(timer.id);
          --count_;
        }
      }
      slot.resize(kept);
    }
  }

  /// The next slot with a timer in it, at most `most_ms` away: until then nothing is due.
  [[nodiscard]] std::uint64_t next_ms(std::uint64_t most_ms) const {
    for (std::uint64_t ahead = 1; ahead < most_ms && ahead < kSlots; ++ahead) {
      if (!slots_[(now_ + ahead) % kSlots].empty()) return now_ + ahead;
    }
    return now_ + most_ms;
  }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  struct Timer {
    std::uint64_t due_ms;
    std::uint32_t id;
  };
  std::array<std::vector<Timer>, kSlots> slots_;
  std::uint64_t now_;
  std::size_t count_ = 0;
};

}  // namespace greynic::monitor
