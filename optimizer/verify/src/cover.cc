#include "cover.h"

#include <bit>

namespace greynic::verify {
namespace {

constexpr std::uint64_t kMostSteps = 200'000;  // of one subtraction

class Subtraction {
 public:
  Subtraction(const Pool& pool, const Cube& cube, const std::vector<std::uint32_t>& takers,
              std::vector<Cube>& left, std::size_t most)
      : pool_(pool), cube_(cube), left_(left), takers_(takers), parts_left_(most) {}

  /// False when there are too many parts.
  bool run() { return run(0, takers_.size()); }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  /// Halves the cube where the widest taker that meets it ends, until it is inside of one. The
  /// takers in question lie at these places of takers_; those that meet the cube go behind them.
  bool run(std::size_t begin, std::size_t end) {
    steps_ += end - begin + 1;
    std::uint32_t widest = 0;
    int fewest = 1 << 20;
    const std::size_t first = takers_.size();
    for (std::size_t i = begin; i < end && fewest > 0; ++i) {
      const std::uint32_t taker = takers_[i];
      const int open = open_bits(taker);
      if (open < 0) continue;
      takers_.push_back(taker);
      if (open >= fewest) continue;
      fewest = open;
      widest = taker;
    }
    const bool done = fewest == 0 || halve(widest, first);
    takers_.resize(first);
    return done;
  }

  bool halve(std::uint32_t widest, std::size_t first) {
    const std::size_t last = takers_.size();
    if (first == last || steps_ > kMostSteps) {
      if (parts_left_-- == 0) return false;
      left_.push_back(cube_);
      return true;
    }
    const std::size_t w = first_open_word(widest);
    const std::uint64_t open = pool_.fixed(widest)[w] & ~cube_.fixed[w];
    const std::uint64_t bit = open & (~open + 1);
    cube_.fixed[w] |= bit;
    for (const std::uint64_t side : {std::uint64_t{0}, bit}) {
      cube_.value[w] = (cube_.value[w] & ~bit) | side;
      if (!run(first, last)) return false;
    }
    cube_.fixed[w] &= ~bit;
    cube_.value[w] &= ~bit;
    return true;
  }

  /// Bits at which the taker looks and that the cube leaves open; -1 when they do not meet.
  [[nodiscard]] int open_bits(std::uint32_t taker) const {
    const std::uint64_t* const value = pool_.value(taker);
    const std::uint64_t* const fixed = pool_.fixed(taker);
    int open = 0;
    for (std::size_t w = 0; w < pool_.words; ++w) {
      if (((value[w] ^ cube_.value[w]) & fixed[w] & cube_.fixed[w]) != 0) return -1;
      open += std::popcount(fixed[w] & ~cube_.fixed[w]);
    }
    return open;
  }

  [[nodiscard]] std::size_t first_open_word(std::uint32_t taker) const {
    std::size_t w = 0;
    while ((pool_.fixed(taker)[w] & ~cube_.fixed[w]) == 0) ++w;
    return w;
  }

  const Pool& pool_;
  Cube cube_;
  std::vector<Cube>& left_;
  std::vector<std::uint32_t> takers_;  ///< all; then, halving by halving, those still in question
  std::size_t parts_left_;
  std::uint64_t steps_ = 0;
};

}  // namespace

bool meets(const Pool& pool, std::uint32_t entry, const Cube& cube) {
  const std::uint64_t* const value = pool.value(entry);
  const std::uint64_t* const fixed = pool.fixed(entry);
  for (std::size_t w = 0; w < pool.words; ++w) {
    if (((value[w] ^ cube.value[w]) & fixed[w] & cube.fixed[w]) != 0) return false;
  }
  return true;
}

bool contains(const Pool& pool, std::uint32_t entry, const Cube& cube) {
  const std::uint64_t* const value = pool.value(entry);
  const std::uint64_t* const fixed = pool.fixed(entry);
  for (std::size_t w = 0; w < pool.words; ++w) {
    if ((fixed[w] & ~cube.fixed[w]) != 0) return false;
    if (((value[w] ^ cube.value[w]) & fixed[w]) != 0) return false;
  }
  return true;
}

bool differs(const Cube& cube, const std::uint64_t* value, const std::uint64_t* fixed,
             CubeBits& looked_at) {
  std::size_t word = cube.fixed.size();
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < cube.fixed.size(); ++w) {
    const std::uint64_t differ = (value[w] ^ cube.value[w]) & fixed[w] & cube.fixed[w];
    if ((differ & looked_at[w]) != 0) return true;
    if (differ == 0 || bits != 0) continue;
    word = w;
    bits = differ;
  }
  if (bits == 0) return false;
  looked_at[word] |= bits & (~bits + 1);  // the highest of its field
  return true;
}

bool narrow(const Pool& pool, std::uint32_t entry, Cube& cube) {
  if (!meets(pool, entry, cube)) return false;
  for (std::size_t w = 0; w < pool.words; ++w) {
    cube.value[w] |= pool.value(entry)[w];
    cube.fixed[w] |= pool.fixed(entry)[w];
  }
  return true;
}

bool subtract(const Pool& pool, const Cube& cube, const std::vector<std::uint32_t>& takers,
              std::vector<Cube>& left, std::uint64_t& comparisons, std::size_t most) {
  Subtraction subtraction(pool, cube, takers, left, most);
  const bool few = subtraction.run();
  comparisons += subtraction.steps();
  return few;
}

}  // namespace greynic::verify
