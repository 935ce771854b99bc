#include "src/live/cube_index.h"

#include <algorithm>
#include <bit>

namespace greynic::optimizer::live {
namespace {

/// The child that a cube belongs to: 0, 1, or 2 when it does not look at the bit.
unsigned child_for(const Cube& cube, int bit) {
  const Part& part = cube[static_cast<std::size_t>(bit) / 64];
  if ((part.mask >> bit % 64 & 1) == 0) return 2;
  return static_cast<unsigned>(part.value >> bit % 64 & 1);
}

/// The bit that most of the cubes look at, with both values; -1: all look at the same in the same
/// way, or at nothing but what is decided.
int widest_bit(const Ids& ids, const Cube& decided, const std::vector<Cube>& cubes,
               std::size_t words) {
  constexpr std::size_t kLookedAt = 128;
  const std::size_t step = ids.size() / kLookedAt + 1;
  std::array<std::uint32_t, kMostWords * 64> ones{};
  std::array<std::uint32_t, kMostWords * 64> zeros{};
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < ids.size(); i += step, ++seen) {
    const Cube& cube = cubes[ids[i]];
    for (std::size_t w = 0; w < words; ++w) {
      for (Word bits = cube[w].mask & ~decided[w].mask; bits != 0; bits &= bits - 1) {
        const auto shift = static_cast<std::size_t>(std::countr_zero(bits));
        ++((cube[w].value >> shift & 1) != 0 ? ones : zeros)[w * 64 + shift];
      }
    }
  }
  int best = -1;
  std::uint32_t best_score = 0;
  for (std::size_t bit = 0; bit < words * 64; ++bit) {
    if (ones[bit] == seen || zeros[bit] == seen) continue;  // separates nothing
    const std::uint32_t score = ones[bit] + zeros[bit] + 4 * std::min(ones[bit], zeros[bit]);
    if (score <= best_score) continue;
    best_score = score;
    best = static_cast<int>(bit);
  }
  return best;
}

}  // namespace

void CubeIndex::build(Ids ids, const std::vector<Cube>& cubes, std::size_t words) {
  nodes_.assign(1, {});
  nodes_[0].count = static_cast<std::uint32_t>(ids.size());
  nodes_[0].ids = std::move(ids);
  if (nodes_[0].ids.size() > nodes_[0].split_at) split(0, {}, cubes, words);
}

void CubeIndex::split(std::uint32_t node, Cube decided, const std::vector<Cube>& cubes,
                      std::size_t words) {
  const int bit = widest_bit(nodes_[node].ids, decided, cubes, words);
  if (bit < 0) {
    nodes_[node].split_at = 2 * nodes_[node].ids.size();
    return;
  }
  const Ids ids = std::move(nodes_[node].ids);
  nodes_[node].ids = {};
  nodes_[node].bit = bit;
  decided[static_cast<std::size_t>(bit) / 64].mask |= Word{1} << bit % 64;
  Ids sides[3];
  for (const std::uint32_t id : ids) sides[child_for(cubes[id], bit)].push_back(id);
  for (unsigned i = 0; i < 3; ++i) {
    if (sides[i].empty()) continue;
    const auto child = static_cast<std::uint32_t>(nodes_.size());
    nodes_[node].child[i] = child;
    nodes_.emplace_back();
    nodes_[child].count = static_cast<std::uint32_t>(sides[i].size());
    nodes_[child].ids = std::move(sides[i]);
    if (nodes_[child].ids.size() > nodes_[child].split_at) split(child, decided, cubes, words);
  }
}

void CubeIndex::insert(std::uint32_t id, const std::vector<Cube>& cubes, std::size_t words) {
  const Cube& cube = cubes[id];
  Cube decided{};
  std::uint32_t at = 0;
  ++nodes_[at].count;
  while (nodes_[at].bit >= 0) {
    const int bit = nodes_[at].bit;
    decided[static_cast<std::size_t>(bit) / 64].mask |= Word{1} << bit % 64;
    const unsigned side = child_for(cube, bit);
    if (nodes_[at].child[side] == 0) {
      const auto child = static_cast<std::uint32_t>(nodes_.size());
      nodes_[at].child[side] = child;
      nodes_.emplace_back();
    }
    at = nodes_[at].child[side];
    ++nodes_[at].count;
  }
  nodes_[at].ids.push_back(id);
  if (nodes_[at].ids.size() > nodes_[at].split_at) split(at, decided, cubes, words);
}

void CubeIndex::erase(std::uint32_t id, const std::vector<Cube>& cubes) {
  const Cube& cube = cubes[id];
  std::uint32_t at = 0;
  --nodes_[at].count;
  while (nodes_[at].bit >= 0) {
    at = nodes_[at].child[child_for(cube, nodes_[at].bit)];
    --nodes_[at].count;
  }
  Ids& ids = nodes_[at].ids;
  *std::find(ids.begin(), ids.end(), id) = ids.back();
  ids.pop_back();
}

std::size_t CubeIndex::meeting(const Cube& cube, const std::vector<Cube>& cubes, std::size_t words,
                               Ids& found) const {
  found.clear();
  open_.assign(1, 0);
  std::size_t looked_at = 0;
  while (!open_.empty()) {
    const Node& node = nodes_[open_.back()];
    open_.pop_back();
    ++looked_at;
    if (node.count == 0) continue;
    if (node.bit < 0) {
      looked_at += node.ids.size();
      for (const std::uint32_t id : node.ids) {
        const Cube& held = cubes[id];
        Word differ = 0;
        for (std::size_t w = 0; w < words; ++w) {
          differ |= (held[w].value ^ cube[w].value) & held[w].mask & cube[w].mask;
        }
        if (differ == 0) found.push_back(id);
      }
      continue;
    }
    const unsigned wanted = child_for(cube, node.bit);
    for (unsigned i = 0; i < 3; ++i) {
      if (node.child[i] != 0 && (wanted == 2 || i == 2 || i == wanted)) {
        open_.push_back(node.child[i]);
      }
    }
  }
  return looked_at;
}

}  // namespace greynic::optimizer::live
