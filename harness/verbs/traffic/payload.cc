#include "traffic/payload.h"

#include <algorithm>
#include <cstring>

#include "greynic/statistics/random.h"

namespace greynic::verbs {
namespace {

using statistics::split_mix;

/// Calls visit(offset, word bytes, size) over the payload until it returns false.
template <typename Visit>
bool walk(std::size_t size, std::uint64_t seed, std::uint32_t lane, std::uint32_t slot,
          const Visit& visit) {
  const std::uint64_t base = split_mix(seed ^ split_mix((std::uint64_t{lane} << 32) | slot));
  for (std::size_t offset = 0; offset < size; offset += sizeof(std::uint64_t)) {
    const std::uint64_t value = base + offset * 0x9e3779b97f4a7c15;
    if (!visit(offset, value, std::min(sizeof value, size - offset))) return false;
  }
  return true;
}

}  // namespace

void fill_payload(std::span<std::byte> bytes, std::uint64_t seed, std::uint32_t lane,
                  std::uint32_t slot) {
  walk(bytes.size(), seed, lane, slot, [&](std::size_t offset, std::uint64_t value, std::size_t n) {
    std::memcpy(bytes.data() + offset, &value, n);
    return true;
  });
}

bool payload_matches(std::span<const std::byte> bytes, std::uint64_t seed, std::uint32_t lane,
                     std::uint32_t slot) {
  return walk(bytes.size(), seed, lane, slot,
              [&](std::size_t offset, std::uint64_t value, std::size_t n) {
                return std::memcmp(bytes.data() + offset, &value, n) == 0;
              });
}

void spoil_payload(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = ~byte;
}

bool fetched_well(Endpoint& endpoint, std::uint32_t lane, std::uint64_t message,
                  std::uint32_t bytes) {
  const std::vector<Slot>& slots = endpoint.slots(lane);
  const auto index = static_cast<std::uint32_t>(message % slots.size());
  const Slot& slot = slots[index];
  const auto landed = endpoint.local(slot).bytes().subspan(slot.offset, bytes);
  if (is_atomic(endpoint.plan().operation)) {
    std::uint64_t found = 0;
    std::memcpy(&found, landed.data(), sizeof found);
    return found == message;
  }
  const bool good = payload_matches(landed, endpoint.plan().seed, lane, index);
  spoil_payload(landed);
  return good;
}

}  // namespace greynic::verbs
