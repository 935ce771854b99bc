#pragma once

/// Memory that a program has lent to its broker, beside the segment: memfds that cannot shrink, each
/// mapped here and there. It outlives the broker: a new one is handed the same memfds.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "attachment.h"

namespace greynic::broker::client {

class LentMemory {
 public:
  struct Place {
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
  };
  LentMemory() = default;
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// Maps new memory and hands it over; the broker's answer comes as an event. Null with errno.
  std::byte* make(Attachment& attachment, std::size_t bytes);
  /// The broker's answer to a region.
  void take_answer(std::uint32_t region, int error);
  /// 0, EINPROGRESS before an answer, or the error; EINVAL: it was not lent.
  [[nodiscard]] int state(const void* memory) const;
  /// The broker lets it go once nothing of it is on its way; that comes as an event too.
  void ask_back(Attachment& attachment, const void* memory);
  void give_up(const void* memory);
  /// The broker has died: nothing is sent from here until a new one was handed all and has answered.
  void lose_broker();
  void hand_over(Attachment& attachment);
  /// Where these bytes lie; nothing: not whole in memory that the broker has.
  [[nodiscard]] std::optional<Place> find(const void* data, std::size_t bytes) const;

 private:
  struct Region {
    std::size_t bytes = 0;
    int descriptor = -1;
    std::uint32_t number = 0;
    int state = 0;
  };
  void hand_over(Attachment& attachment, Region& region);
  std::map<const std::byte*, Region> regions_;  ///< by where they begin
  std::uint32_t next_number_ = 1;
};

}  // namespace greynic::broker::client
