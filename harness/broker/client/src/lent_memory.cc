#include "lent_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

namespace greynic::broker::client {

LentMemory::~LentMemory() {
  while (!regions_.empty()) give_up(regions_.begin()->first);
}

std::byte* LentMemory::make(Attachment& attachment, std::size_t bytes) {
  bytes = (bytes + local::kPage - 1) / local::kPage * local::kPage;
  Region region{.bytes = bytes};
  region.descriptor = memfd_create("greynic_broker_lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void* base = MAP_FAILED;
  if (region.descriptor >= 0 && ftruncate(region.descriptor, static_cast<off_t>(bytes)) == 0 &&
      fcntl(region.descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.descriptor, 0);
  }
  if (base == MAP_FAILED) {
    const int error = errno;
    if (region.descriptor >= 0) close(region.descriptor);
    errno = error;
    return nullptr;
  }
  auto* memory = static_cast<std::byte*>(base);
  hand_over(attachment, regions_[memory] = region);
  return memory;
}

void LentMemory::hand_over(Attachment& attachment, Region& region) {
  region.number = next_number_++;
  region.state = attachment.lend(region.descriptor, region.number, region.bytes);
  if (region.state == 0) region.state = EINPROGRESS;
}

void LentMemory::hand_over(Attachment& attachment) {
  for (auto& [base, region] : regions_) hand_over(attachment, region);
}

void LentMemory::lose_broker() {
  for (auto& [base, region] : regions_) region.state = ECONNRESET;
}

void LentMemory::take_answer(std::uint32_t number, int error) {
  for (auto& [base, region] : regions_) {
    if (region.number == number) region.state = error;
  }
}

int LentMemory::state(const void* memory) const {
  const auto found = regions_.find(static_cast<const std::byte*>(memory));
  return found == regions_.end() ? EINVAL : found->second.state;
}

void LentMemory::ask_back(Attachment& attachment, const void* memory) {
  const auto found = regions_.find(static_cast<const std::byte*>(memory));
  if (found == regions_.end() || found->second.state != 0) return;
  found->second.state = EINPROGRESS;
  (void)attachment.post(
      {.kind = local::RequestKind::kTakeBack, .connection = found->second.number});
}

void LentMemory::give_up(const void* memory) {
  const auto found = regions_.find(static_cast<const std::byte*>(memory));
  if (found == regions_.end()) return;
  munmap(const_cast<std::byte*>(found->first), found->second.bytes);
  close(found->second.descriptor);
  regions_.erase(found);
}

std::optional<LentMemory::Place> LentMemory::find(const void* data, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(data);
  auto found = regions_.upper_bound(at);
  if (found == regions_.begin()) return std::nullopt;
  found = std::prev(found);
  const auto offset = static_cast<std::uint64_t>(at - found->first);
  const Region& region = found->second;
  if (region.state != 0 || offset >= region.bytes || bytes > region.bytes - offset) {
    return std::nullopt;
  }
  return Place{region.number, offset};
}

}  // namespace greynic::broker::client
