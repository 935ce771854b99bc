#include "src/search/splits.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

namespace greynic::verify {
namespace {

using Numbers = std::vector<std::uint32_t>;

class Splitter {
 public:
  explicit Splitter(const std::vector<Cube>& asked)
      : asked_(asked),
        words_(asked.front().fixed.size()),
        at_{CubeBits(words_, 0), CubeBits(words_, 0)} {}

  std::vector<Cube> run() {
    Numbers all(asked_.size());
    std::iota(all.begin(), all.end(), 0U);
    halve(all, {});
    return std::move(cubes_);
  }

 private:
  /// `open`: what is asked and not decided at at_; `held`: what takes all packets there.
  void halve(const Numbers& open, const Numbers& held) {
    std::size_t w = 0;
    std::uint64_t bits = 0;
    for (; bits == 0; w += bits == 0 ? 1 : 0) {
      for (const std::uint32_t i : open) bits |= asked_[i].fixed[w] & ~at_.fixed[w];
    }
    const std::uint64_t bit = bits & (~bits + 1);  // highest of its field first
    Numbers open_on[2];
    Numbers held_on[2] = {held, held};
    at_.fixed[w] |= bit;
    for (const unsigned side : {0U, 1U}) {
      for (const std::uint32_t i : open) {
        const bool one = (asked_[i].value[w] & bit) != 0;
        if ((asked_[i].fixed[w] & bit) != 0 && one != (side == 1)) continue;
        (decided(asked_[i]) ? held_on : open_on)[side].push_back(i);
      }
    }
    const bool apart = open_on[0].size() + open_on[1].size() <= open.size();
    for (const unsigned side : {0U, 1U}) {
      at_.value[w] = (at_.value[w] & ~bit) | (side == 1 ? bit : 0);
      if (apart && open_on[side].size() > asked_.size() / 2) {
        halve(open_on[side], held_on[side]);
      } else {
        add(open_on[side], std::move(held_on[side]));
      }
    }
    at_.fixed[w] &= ~bit;
    at_.value[w] &= ~bit;
  }

  [[nodiscard]] bool decided(const Cube& cube) const {
    for (std::size_t w = 0; w < words_; ++w) {
      if ((cube.fixed[w] & ~at_.fixed[w]) != 0) return false;
    }
    return true;
  }

  void add(const Numbers& open, Numbers held) {
    std::sort(held.begin(), held.end());
    if (open.empty() && !known_.insert(std::move(held)).second) return;
    cubes_.push_back(at_);
  }

  const std::vector<Cube>& asked_;
  std::size_t words_;
  Cube at_;
  std::vector<Cube> cubes_;
  std::set<Numbers> known_;  ///< held where nothing is open
};

}  // namespace

std::vector<Cube> split(const std::vector<Cube>& asked) { return Splitter(asked).run(); }

}  // namespace greynic::verify
