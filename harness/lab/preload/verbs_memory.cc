// Protection domains, memory regions, memory windows.

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "preload/calls.h"
#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

/// Brings the pages in, as an RNIC pins them. 0, or why there is no such memory.
int populate(void* address, std::size_t length, unsigned access) {
  if (length == 0 || (access & IBV_ACCESS_ON_DEMAND) != 0) return 0;
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + length;
  if (end < begin) return EINVAL;
  const bool writes = (access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != 0;
#ifndef MADV_POPULATE_READ
  constexpr int kRead = 22, kWrite = 23;
#else
  constexpr int kRead = MADV_POPULATE_READ, kWrite = MADV_POPULATE_WRITE;
#endif
  if (madvise(reinterpret_cast<void*>(begin), end - begin, writes ? kWrite : kRead) == 0) return 0;
  // Other errors: a kernel that does not know it, or a mapping of a kind that has no pages.
  return errno == ENOMEM || errno == EFAULT ? EFAULT : 0;
}

bool sensible(unsigned access) {
  const unsigned needs_local = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  return (access & needs_local) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

ibv_mr* register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        unsigned access, MemoryEntry::Kind kind) {
  if (!sensible(access) || (access & IBV_ACCESS_ON_DEMAND) != 0) {
    errno = (access & IBV_ACCESS_ON_DEMAND) != 0 ? EOPNOTSUPP : EINVAL;
    return nullptr;
  }
  if (kind == MemoryEntry::Kind::kRegion) {
    if (const int error = populate(address, length, access)) {
      errno = error;
      return nullptr;
    }
  }
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  const std::uint32_t key = nic.new_key();
  if (key == 0) return nullptr;
  Pd* const owner = object_of<Pd>(pd).whole();
  ++owner->users;
  MemoryEntry& entry = *nic.entry_at(key);
  entry.kind = kind;
  entry.valid = true;
  entry.access = access;
  entry.pd = owner;
  entry.begin = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
  entry.length = length;
  entry.memory = static_cast<std::byte*>(address);
  auto* const region = new ibv_mr{};
  region->context = pd->context;
  region->pd = pd;
  region->addr = address;
  region->length = length;
  region->handle = key >> 8;
  region->lkey = region->rkey = key;
  const int error = !turns::taken() ? 0
                    : kind == MemoryEntry::Kind::kRegion
                        ? turns::add_memory(key, address, length, entry.begin, access)
                        : not_offered("ibv_alloc_null_mr in virtual time");
  if (error == 0) return region;
  --owner->users;
  nic.free_key(key);
  delete region;
  errno = error;
  return nullptr;
}

}  // namespace

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  return register_region(pd, nullptr, SIZE_MAX, 0,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                         MemoryEntry::Kind::kNothing);
}

int advise_mr(ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t) {
  return not_offered("ibv_advise_mr");
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    errno = EINVAL;
    return nullptr;
  }
  if (turns::taken()) {
    not_offered("ibv_alloc_mw in virtual time");
    return nullptr;
  }
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  const std::uint32_t key = nic.new_key();
  if (key == 0) return nullptr;
  MemoryEntry& entry = *nic.entry_at(key);
  entry.kind = type == IBV_MW_TYPE_1 ? MemoryEntry::Kind::kWindow1 : MemoryEntry::Kind::kWindow2;
  entry.pd = object_of<Pd>(pd).whole();
  ++entry.pd->users;
  auto* const window = new ibv_mw{};
  window->context = pd->context;
  window->pd = pd;
  window->rkey = key;
  window->handle = key >> 8;
  window->type = type;
  return window;
}

int dealloc_mw(ibv_mw* window) {
  Nic& nic = Nic::instance();
  {
    const Hold hold(nic);
    if (MemoryEntry* const entry = nic.entry_at(window->handle << 8)) {
      nic.unbind(*entry);
      --entry->pd->users;
      nic.free_key(window->handle << 8);
    }
  }
  delete window;
  return 0;
}

/// Windows of type 1 are bound by a call, which posts.
int bind_mw(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* request) {
  if (window->type != IBV_MW_TYPE_1) return EINVAL;
  SendWork work;
  work.id = request->wr_id;
  work.opcode = IBV_WR_BIND_MW;
  work.flags = request->send_flags;
  work.bind.window = window;
  work.bind.rkey = ibv_inc_rkey(window->rkey);
  work.bind.info = request->bind_info;
  const ibv_mw_bind_info& info = request->bind_info;
  if (info.length > 0 && (!info.mr || info.mr->pd != window->pd)) return EPERM;
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  const std::uint32_t key = work.bind.rkey;
  const int error = nic.post(object_of<Qp>(qp), std::move(work));
  nic.begin();
  if (error == 0) window->rkey = key;
  return error;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr*) { return new ibv_td{context}; }

int dealloc_td(ibv_td* domain) {
  delete domain;
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  const unsigned known =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (!attributes->pd || (attributes->comp_mask & ~known) != 0) {
    errno = EINVAL;
    return nullptr;
  }
  const Hold hold(Nic::instance());
  auto* const pd = new Pd;
  pd->seen.context = context;
  pd->parent = object_of<Pd>(attributes->pd).whole();
  ++pd->parent->users;
  return &pd->seen;
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const pd = new Pd;
  pd->seen.context = context;
  return &pd->seen;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  {
    const Hold hold(Nic::instance());
    Pd& own = object_of<Pd>(pd);
    if (own.users > 0) return EBUSY;
    if (own.parent) --own.parent->users;
  }
  delete &object_of<Pd>(pd);
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  return register_region(pd, address, length, iova, access, MemoryEntry::Kind::kRegion);
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                          static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        int access) {
  return ibv_reg_mr_iova2(pd, address, length, iova, static_cast<unsigned>(access));
}

int ibv_rereg_mr(ibv_mr* region, int flags, ibv_pd* pd, void* address, std::size_t length,
                 int access) {
  if (turns::taken()) {
    not_offered("ibv_rereg_mr in virtual time");
    return IBV_REREG_MR_ERR_INPUT;
  }
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return IBV_REREG_MR_ERR_INPUT;
  const auto wanted = static_cast<unsigned>(access);
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 && !sensible(wanted)) return IBV_REREG_MR_ERR_INPUT;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && populate(address, length, wanted) != 0) {
    return IBV_REREG_MR_ERR_INPUT;
  }
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  MemoryEntry* const entry = nic.entry_of(region->lkey);
  if (!entry || entry->windows > 0) return IBV_REREG_MR_ERR_INPUT;
  if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
    entry->memory = static_cast<std::byte*>(address);
    entry->begin = reinterpret_cast<std::uintptr_t>(address);
    entry->length = length;
    region->addr = address;
    region->length = length;
  }
  if (flags & IBV_REREG_MR_CHANGE_PD) {
    --entry->pd->users;
    entry->pd = object_of<Pd>(pd).whole();
    ++entry->pd->users;
    region->pd = pd;
  }
  if (flags & IBV_REREG_MR_CHANGE_ACCESS) entry->access = wanted;
  return 0;
}

int ibv_dereg_mr(ibv_mr* region) {
  Nic& nic = Nic::instance();
  {
    const Hold hold(nic);
    MemoryEntry* const entry = nic.entry_of(region->lkey);
    if (!entry) return EINVAL;
    if (entry->windows > 0) return EBUSY;
    --entry->pd->users;
    if (turns::taken()) turns::drop_memory(region->lkey);
    nic.free_key(region->lkey);
  }
  delete region;
  return 0;
}

}  // extern "C"
