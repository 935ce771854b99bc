#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/nic.h"

namespace greynic::lab {
namespace {

/// A program that spins on the last byte sees a message that is whole.
void copy_in(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::memcpy(to, from, bytes - 1);
  __atomic_store_n(reinterpret_cast<unsigned char*>(to) + bytes - 1,
                   std::to_integer<unsigned char>(from[bytes - 1]), __ATOMIC_RELEASE);
}

/// Calls `part(element, offset in it, bytes)` for the elements that [offset, offset + bytes) covers;
/// false when they end before, or a part says so.
template <typename Part>
bool over_elements(const std::vector<ibv_sge>& elements, std::uint64_t offset, std::uint64_t bytes,
                   Part part) {
  for (const ibv_sge& element : elements) {
    if (bytes == 0) break;
    if (offset >= element.length) {
      offset -= element.length;
      continue;
    }
    const std::uint64_t now = std::min<std::uint64_t>(bytes, element.length - offset);
    if (!part(element, offset, now)) return false;
    bytes -= now;
    offset = 0;
  }
  return bytes == 0;
}

}  // namespace

std::uint32_t Nic::new_key() {
  static constexpr std::size_t kMostEntries = 1 << 22;
  std::size_t index = free_keys_.empty() ? memory.size() : free_keys_.back();
  if (free_keys_.empty()) {
    if (memory.size() >= kMostEntries) {
      errno = ENOMEM;
      return 0;
    }
    memory.emplace_back();
  } else {
    free_keys_.pop_back();
  }
  const auto tag = static_cast<std::uint8_t>(memory[index].tag + 1);
  memory[index] = {.tag = tag};
  return static_cast<std::uint32_t>(index << 8 | tag);
}

void Nic::free_key(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  memory[index] = {.tag = memory[index].tag};
  free_keys_.push_back(index);
}

MemoryEntry* Nic::entry_of(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  if (index == 0 || index >= memory.size()) return nullptr;
  MemoryEntry& entry = memory[index];
  if (entry.kind == MemoryEntry::Kind::kNone || entry.tag != (key & 255)) return nullptr;
  return &entry;
}

std::byte* Nic::reach(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                      unsigned access, const Pd* pd, const Qp* remote_of, bool& nothing) {
  nothing = false;
  const MemoryEntry* const entry = entry_of(key);
  if (!entry || !entry->valid || entry->pd != pd) return nullptr;
  if ((entry->access & access) != access) return nullptr;
  using Kind = MemoryEntry::Kind;
  if (entry->kind == Kind::kNothing) {
    nothing = true;
    return nullptr;
  }
  const bool window = entry->kind == Kind::kWindow1 || entry->kind == Kind::kWindow2;
  if (window && !remote_of) return nullptr;
  if (entry->kind == Kind::kWindow2 && entry->qp != remote_of) return nullptr;
  if (address < entry->begin || address - entry->begin > entry->length ||
      length > entry->length - (address - entry->begin)) {
    return nullptr;
  }
  return entry->memory + (address - entry->begin);
}

bool Nic::may_use(const std::vector<ibv_sge>& elements, Pd* pd, unsigned access) {
  return std::all_of(elements.begin(), elements.end(), [&](const ibv_sge& element) {
    if (element.length == 0) return true;
    bool nothing = false;
    return reach(element.lkey, element.addr, element.length, access, pd, nullptr, nothing) ||
           nothing;
  });
}

bool Nic::scatter(const std::vector<ibv_sge>& elements, Pd* pd, std::uint64_t offset,
                  const std::byte* from, std::uint64_t bytes) {
  return over_elements(elements, offset, bytes,
                       [&](const ibv_sge& element, std::uint64_t skip, std::uint64_t now) {
                         bool nothing = false;
                         std::byte* const to = reach(element.lkey, element.addr + skip, now,
                                                     IBV_ACCESS_LOCAL_WRITE, pd, nullptr, nothing);
                         if (!to && !nothing) return false;
                         if (to) copy_in(to, from, now);
                         from += now;
                         return true;
                       });
}

bool Nic::gather(const SendWork& work, Pd* pd, std::uint64_t offset, std::byte* to,
                 std::uint64_t bytes) {
  if (work.is_inline) {
    if (bytes > 0) std::memcpy(to, work.inlined.data() + offset, bytes);
    return true;
  }
  return over_elements(work.elements, offset, bytes,
                       [&](const ibv_sge& element, std::uint64_t skip, std::uint64_t now) {
                         bool nothing = false;
                         const std::byte* const from =
                             reach(element.lkey, element.addr + skip, now, 0, pd, nullptr, nothing);
                         if (!from && !nothing) return false;
                         if (from) {
                           std::memcpy(to, from, now);
                         } else {
                           std::memset(to, 0, now);
                         }
                         to += now;
                         return true;
                       });
}

void Nic::unbind(MemoryEntry& window) {
  if (window.region != 0 && window.region < memory.size() && memory[window.region].windows > 0) {
    --memory[window.region].windows;
  }
  window.region = 0;
  window.valid = false;
}

ibv_wc_status Nic::bind(Qp* qp, ibv_mw& window, std::uint32_t new_rkey,
                        const ibv_mw_bind_info& info) {
  using Kind = MemoryEntry::Kind;
  MemoryEntry* const entry = entry_of(window.rkey);
  if (!entry || (entry->kind != Kind::kWindow1 && entry->kind != Kind::kWindow2)) {
    return IBV_WC_MW_BIND_ERR;
  }
  if (entry->kind == Kind::kWindow2 && entry->valid) return IBV_WC_MW_BIND_ERR;
  unbind(*entry);
  entry->tag = static_cast<std::uint8_t>(new_rkey);
  window.rkey = new_rkey;
  if (info.length == 0) return IBV_WC_SUCCESS;  // type 1: unbinding

  const std::uint32_t lkey = info.mr ? info.mr->lkey : 0;
  const MemoryEntry* const region = entry_of(lkey);
  const unsigned remote_writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if (!region || !region->valid || region->pd != entry->pd ||
      (region->access & IBV_ACCESS_MW_BIND) == 0 || info.addr < region->begin ||
      info.addr - region->begin > region->length ||
      info.length > region->length - (info.addr - region->begin) ||
      ((info.mw_access_flags & remote_writes) != 0 &&
       (region->access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
    return IBV_WC_MW_BIND_ERR;
  }
  const bool from_zero = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
  entry->memory = region->memory + (info.addr - region->begin);
  entry->begin = from_zero ? 0 : info.addr;
  entry->length = info.length;
  entry->access = info.mw_access_flags;
  entry->region = lkey >> 8;
  entry->qp = qp;
  entry->valid = true;
  ++memory[entry->region].windows;
  return IBV_WC_SUCCESS;
}

bool Nic::invalidate(Qp& qp, std::uint32_t key) {
  MemoryEntry* const entry = entry_of(key);
  if (!entry || !entry->valid || entry->kind != MemoryEntry::Kind::kWindow2 || entry->qp != &qp) {
    return false;
  }
  unbind(*entry);
  return true;
}

}  // namespace greynic::lab
