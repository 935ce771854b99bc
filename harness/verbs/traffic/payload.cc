#include "traffic/payload.h"

#include <algorithm>
#include <cstring>

namespace greynic::verbs {
namespace {

/// SplitMix64 (Steele, Lea and Flood 2014): any two keys give unrelated words.
std::uint64_t word(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

/// Calls visit(offset, word bytes, size) over the payload until it returns false.
template <typename Visit>
bool walk(std::size_t size, std::uint64_t seed, std::uint32_t lane, std::uint32_t slot,
          const Visit& visit) {
  const std::uint64_t base = word(seed ^ word((std::uint64_t{lane} << 32) | slot));
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

}  // namespace greynic::verbs
