#include "core/registration_cache.h"

#include <algorithm>

namespace greynic::broker {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

bool covers(const Extent& outer, const Extent& inner) {
  return inner.offset >= outer.offset && inner.offset + inner.bytes <= outer.offset + outer.bytes;
}

}  // namespace

RegistrationCache::~RegistrationCache() {
  for (const Entry& entry : entries_) device_.deregister(entry.memory);
}

Result<RegistrationCache::Held> RegistrationCache::hold(const Region& region,
                                                        std::span<std::byte> memory,
                                                        const Extent& part) {
  const auto hand_out = [&](Place entry, bool made) {
    entries_.splice(entries_.begin(), entries_, entry);
    ++entry->users;
    Held held{.id = entry->id, .memory = entry->memory, .made = made};
    held.memory.address += part.offset - entry->part.offset;
    return held;
  };
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->region == region && covers(entry->part, part)) return hand_out(entry, false);
  }
  const std::uint64_t first = part.offset / kPageBytes * kPageBytes;
  const std::uint64_t last = (part.offset + part.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const Extent pages{first, std::min<std::uint64_t>(last, memory.size()) - first};
  if (!make_room(pages.bytes)) {
    return fail(ErrorCode::kTooBig, "broker: all registrations of lent memory are in use");
  }
  auto registered =
      device_.register_memory(memory.subspan(pages.offset, pages.bytes), Access::kRead);
  if (!registered) return pass_on(registered);
  entries_.push_front({next_id_++, region, pages, *registered});
  bytes_ += pages.bytes;
  return hand_out(entries_.begin(), true);
}

bool RegistrationCache::make_room(std::uint64_t bytes) {
  if (bytes > most_bytes_) return false;
  const auto fits = [&] {
    return entries_.size() < most_entries_ && bytes_ + bytes <= most_bytes_;
  };
  for (auto entry = entries_.end(); !fits() && entry != entries_.begin();) {
    if (std::prev(entry)->users > 0) {
      --entry;
      continue;
    }
    const auto oldest = std::prev(entry);
    ++evicted_;
    remove(oldest);
  }
  return fits();
}

void RegistrationCache::release(std::uint64_t id) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.id == id; });
  if (found != entries_.end()) --found->users;
}

void RegistrationCache::remove(Place entry) {
  device_.deregister(entry->memory);
  bytes_ -= entry->part.bytes;
  entries_.erase(entry);
}

void RegistrationCache::drop(const Region& region) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (here->region == region) remove(here);
  }
}

bool RegistrationCache::holds(const Region& region) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.region == region && entry.users > 0; });
}

}  // namespace greynic::broker
