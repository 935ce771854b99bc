#include "part_choice.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace greynic::causal {
namespace {

constexpr double kHealed[] = {0.35, 0.2, 0.12};  // share of the settings in a test
constexpr int kDraws = 36;
constexpr int kPasses = 6;
constexpr double kLeastBetter = 1e-5;  // bits
constexpr double kHardly = 1e-4;       // chance of a setting that is let be
constexpr std::uint32_t kNoCell = static_cast<std::uint32_t>(-1);

using In = std::array<bool, kMostSettings>;

In as_array(const Set& set) {
  In in;
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = set.test(i);
  return in;
}

bool is_hit(const NeededSet& set, const In& in) {
  bool hit = false;
  for (std::size_t i = 0; i < set.count; ++i) hit |= in[set.members[i]];
  return hit;
}

double log2_times(double value) { return value > 0.0 ? value * std::log2(value) : 0.0; }

}  // namespace

PartChoice::PartChoice(const std::vector<NeededSet>& sets, statistics::Random& random)
    : sets_(sets), random_(random), cell_(sets.size(), 0) {
  std::array<double, kMostSettings> chance = {};
  for (const NeededSet& one : sets) {
    for (std::size_t i = 0; i < one.count; ++i) chance[one.members[i]] += one.chance;
  }
  for (std::size_t i = 0; i < chance.size(); ++i) {
    if (chance[i] > kHardly) open_.push_back(i);
  }
}

void PartChoice::add(const Set& healed) {
  const In in = as_array(healed);
  std::vector<std::uint32_t> fresh(2 * cells_, kNoCell);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    std::uint32_t& cell = fresh[2 * cell_[i] + (is_hit(sets_[i], in) ? 1 : 0)];
    if (cell == kNoCell) cell = count++;
    cell_[i] = cell;
  }
  cells_ = std::max<std::size_t>(1, count);
}

double PartChoice::bits_of(const Set& healed) const {
  const In in = as_array(healed);
  std::vector<double> chances(2 * cells_, 0.0);
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    chances[2 * cell_[i] + (is_hit(sets_[i], in) ? 1 : 0)] += sets_[i].chance;
  }
  double bits = 0.0;
  for (std::size_t i = 0; i < chances.size(); i += 2) {
    bits += log2_times(chances[i] + chances[i + 1]) - log2_times(chances[i]) -
            log2_times(chances[i + 1]);
  }
  return bits;
}

double PartChoice::chance_of_wall(const Set& healed) const {
  const In in = as_array(healed);
  double wall = 0.0;
  for (const NeededSet& one : sets_) wall += is_hit(one, in) ? 0.0 : one.chance;
  return wall;
}

Set PartChoice::best() {
  Set best;
  double most = 0.0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Set part;
    for (const std::size_t i : open_) {
      if (random_.uniform() < kHealed[static_cast<std::size_t>(draw) % std::size(kHealed)])
        part.set(i);
    }
    const double bits = bits_of(part);
    if (bits <= most) continue;
    best = part;
    most = bits;
  }
  bool better = true;
  for (int pass = 0; pass < kPasses && better; ++pass) {
    better = false;
    for (const std::size_t i : open_) {
      best.flip(i);
      const double bits = bits_of(best);
      if (bits > most + kLeastBetter) {
        most = bits;
        better = true;
      } else {
        best.flip(i);
      }
    }
  }
  return best;
}

}  // namespace greynic::causal
