#include "src/ways/known_cubes.h"

#include <algorithm>

namespace greynic::verify {
namespace {

// Most kinds are never of use. So new ones come in the middle, and the last goes.
constexpr std::size_t kMostKinds = 128;

}  // namespace

std::uint64_t KnownCubes::hash_of(const Cube& cube, const Kind& kind) const {
  std::uint64_t hash = 0;
  for (std::size_t w = 0; w < words_; ++w) hash = mixed(hash, cube.value[w] & kind.fixed[w]);
  return hash;
}

bool KnownCubes::same(const Cube& cube, const Kind& kind, std::uint32_t number) const {
  for (std::size_t w = 0; w < words_; ++w) {
    if (kind.values[number * words_ + w] != (cube.value[w] & kind.fixed[w])) return false;
  }
  return true;
}

const CubeBits* KnownCubes::containing(const Cube& cube, std::uint64_t& comparisons) {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    ++comparisons;
    Kind& kind = kinds_[i];
    bool wide = true;
    for (std::size_t w = 0; w < words_; ++w) wide = wide && (kind.fixed[w] & ~cube.fixed[w]) == 0;
    if (!wide) continue;
    const auto is = [&](std::uint32_t number) { return same(cube, kind, number); };
    if (!kind.numbers.holds(hash_of(cube, kind), is)) continue;
    std::rotate(kinds_.begin(), kinds_.begin() + static_cast<std::ptrdiff_t>(i),
                kinds_.begin() + static_cast<std::ptrdiff_t>(i + 1));
    return &kinds_.front().fixed;
  }
  return nullptr;
}

void KnownCubes::add(const Cube& cube, const CubeBits& bits) {
  auto kind = std::ranges::find_if(kinds_, [&](const Kind& k) { return k.fixed == bits; });
  if (kind == kinds_.end()) {
    if (kinds_.size() == kMostKinds) kinds_.pop_back();
    const std::size_t place = std::min(kinds_.size(), kMostKinds / 2);
    kind = kinds_.insert(kinds_.begin() + static_cast<std::ptrdiff_t>(place), Kind{bits, {}, {}});
  }
  const auto fresh = static_cast<std::uint32_t>(kind->values.size() / words_);
  const auto is = [&](std::uint32_t number) { return same(cube, *kind, number); };
  if (kind->numbers.find_or_add(hash_of(cube, *kind), fresh, is) != fresh) return;
  for (std::size_t w = 0; w < words_; ++w) kind->values.push_back(cube.value[w] & bits[w]);
}

}  // namespace greynic::verify
