#pragma once

/// Registrations of memory that applications have lent. One is made when a send first needs it and
/// kept for those that follow, as long as there is room: the one that was used longest ago goes
/// first. Registrations in use never go, so the bounds hold always, and hold() fails when all the
/// room is in use.
///
/// A part is named by its region and its place in it, never by an address of the application. So
/// what an application maps later where lent memory once lay cannot be taken for it.

#include <cstdint>
#include <list>
#include <span>
#include <utility>

#include "greynic/broker/core.h"

namespace greynic::broker {

class RegistrationCache {
 public:
  /// An application and its number for what it has lent.
  using Region = std::pair<AppId, std::uint32_t>;
  struct Held {
    std::uint64_t id = 0;  ///< for release()
    Memory memory;         ///< its address is that of the part's first byte
    bool made = false;     ///< it was not registered before
  };

  RegistrationCache(Device& device, std::size_t most_entries, std::uint64_t most_bytes)
      : device_(device), most_entries_(most_entries), most_bytes_(most_bytes) {}
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  /// Whole pages around the part, which lies inside of `memory`. kTooBig when all the room is in use;
  /// else as of Device::register_memory.
  [[nodiscard]] Result<Held> hold(const Region& region, std::span<std::byte> memory,
                                  const Extent& part);
  void release(std::uint64_t id);
  /// Forgets all of a region. Nothing of it may be held.
  void drop(const Region& region);
  [[nodiscard]] bool holds(const Region& region) const;

  [[nodiscard]] std::size_t entry_count() const { return entries_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t evicted() const { return evicted_; }

 private:
  struct Entry {
    std::uint64_t id = 0;
    Region region;
    Extent part;
    Memory memory;
    std::uint32_t users = 0;
  };
  using Place = std::list<Entry>::iterator;
  void remove(Place entry);
  [[nodiscard]] bool make_room(std::uint64_t bytes);

  Device& device_;
  std::size_t most_entries_;
  std::uint64_t most_bytes_;
  std::list<Entry> entries_;  ///< the one that was used last comes first
  std::uint64_t bytes_ = 0, next_id_ = 1, evicted_ = 0;
};

}  // namespace greynic::broker
