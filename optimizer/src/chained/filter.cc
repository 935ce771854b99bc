/// CutChooser::best_filter: packets that some long rules may match are told from those that none
/// can, where rules of two fields stand against each other.

#include <algorithm>
#include <array>

#include "src/chained/cut.h"

namespace greynic::optimizer::chained {
namespace {

constexpr std::size_t kFewBlockers = 2;
constexpr std::size_t kSides = 8;  // that are held against each other: bits of a byte

/// Ranges in a filter save more on a few sets, but few of these layouts are proven.
bool looks_at_part_of_code(const Units& units, const std::vector<Word>& mask) {
  for (std::size_t i = 0; i < kPortFields; ++i) {
    const std::uint32_t bits = units.slot[i].get(mask.data());
    if (units.as_range[i] && bits != 0 && bits != units.slot[i].all()) return true;
  }
  return false;
}

/// Calls visit(row) for those that must come before one, until it says that it has seen enough.
template <typename Visit>
void visit_before(const Units& units, const Node& node, std::uint32_t row, Visit visit) {
  if (node.conflicts.some[row] == 0) {
    for (const std::uint32_t other : node.conflicts.before(row)) {
      if (!visit(other)) return;
    }
    return;
  }
  for (std::uint32_t other = 0; other < row; ++other) {
    const bool same = units.effect[node.rows.unit[other]] == units.effect[node.rows.unit[row]];
    if (!same && units.overlap(node.rows, other, node.rows, row) && !visit(other)) return;
  }
}

/// By row, for a sample of those that others must come before: as bits the sides without whose rows few of
/// these are left; kNoRow for the others.
std::vector<std::uint32_t> freed_without(const Units& units, const Node& node,
                                         const std::vector<bool>& is_bound,
                                         const std::vector<FilterSide>& sides) {
  constexpr std::size_t kLookedAt = 256;
  std::vector<std::uint32_t> bound;
  for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
    if (is_bound[row]) bound.push_back(row);
  }
  std::vector<std::uint32_t> freed(node.rows.size(), kNoRow);
  const std::uint32_t all = (1U << sides.size()) - 1;
  const std::size_t step = bound.size() / kLookedAt + 1;
  for (std::size_t i = 0; i < bound.size(); i += step) {
    std::array<std::size_t, kSides> stay{};
    std::uint32_t& left = freed[bound[i]] = all;
    visit_before(units, node, bound[i], [&](std::uint32_t row) {
      for (std::size_t side = 0; side < sides.size(); ++side) {
        if (!sides[side].row[row] && ++stay[side] > kFewBlockers) left &= ~(1U << side);
      }
      return left != 0;
    });
  }
  return freed;
}

/// Weights of packets that are alike to filters: the sides whose bits they have, and those without which
/// the row that decides them is freed.
struct Alike {
  std::uint32_t has;
  std::uint32_t freed;
  double weight;
};

}  // namespace

std::optional<Filter> CutChooser::best_filter(const Node& node) const {
  constexpr std::size_t kFewRows = 32;
  constexpr double kGain = 30.0;  // matchers that a packet is spared whose rule is freed
  if (node.rows.size() < kFewRows || node.filters >= 2) return std::nullopt;
  std::vector<bool> is_bound(node.rows.size());
  double bound_weight = 0.0;
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    is_bound[row] = node.conflicts.before(row).size() > kFewBlockers;
    if (is_bound[row]) bound_weight += node.weight[row];
  }
  if (bound_weight < 0.5 * node.all_weight) return std::nullopt;

  const std::vector<std::uint32_t> row_of = rows_of_packets(node);
  std::vector<FilterSide> sides;
  for (auto& mask : candidates(node, 6)) {
    if (looks_at_part_of_code(units_, mask)) continue;
    if (auto side = side_of(node, row_of, std::move(mask))) sides.push_back(std::move(*side));
  }
  std::sort(sides.begin(), sides.end(), [](const FilterSide& a, const FilterSide& b) {
    return a.weight - a.strange > b.weight - b.strange;
  });
  if (sides.size() > kSides) sides.resize(kSides);
  if (sides.size() < 2) return std::nullopt;

  const std::vector<std::uint32_t> freed = freed_without(units_, node, is_bound, sides);
  std::vector<Alike> alike;
  KeyNumbers& keys = scratch_->keys;
  keys.restart(node.packets.size());
  double looked_at = 0.0;
  for (std::size_t i = 0; i < node.packets.size(); ++i) {
    if (row_of[i] == kNoRow || freed[row_of[i]] == kNoRow) continue;
    std::uint32_t has = 0;
    for (std::size_t side = 0; side < sides.size(); ++side) {
      if (sides[side].packet[i]) has |= 1U << side;
    }
    const std::uint32_t number = keys.number(has << kSides | freed[row_of[i]]);
    if (number == alike.size()) alike.push_back({has, freed[row_of[i]], 0.0});
    alike[number].weight += packet_weight_[node.packets[i]];
    looked_at += packet_weight_[node.packets[i]];
  }
  std::optional<Filter> best;
  double best_freed = 0.4 * bound_weight;
  for (std::size_t a = 0; a < sides.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      double sum = 0.0;
      for (const Alike& packets : alike) {
        const bool in_a = (packets.has >> a & 1) != 0;
        if (in_a && (packets.has >> b & 1) != 0) continue;
        if ((packets.freed >> (in_a ? b : a) & 1) != 0) sum += packets.weight;
      }
      if (looked_at > 0.0) sum *= bound_weight / looked_at;
      if (sum <= best_freed) continue;
      best_freed = sum;
      best = Filter{sides[a].mask, sides[b].mask};
    }
  }
  const double entries = 3.0 * static_cast<double>(node.rows.size());
  if (best && kGain * best_freed < entries * entry_price_) return std::nullopt;
  return best;
}

/// By packet of a node the row that decides it.
std::vector<std::uint32_t> CutChooser::rows_of_packets(const Node& node) const {
  std::vector<std::uint32_t> row_of_unit(units_.rows.size(), kNoRow);
  for (std::uint32_t row = 0; row < node.rows.size(); ++row) row_of_unit[node.rows.unit[row]] = row;
  std::vector<std::uint32_t> row_of;
  row_of.reserve(node.packets.size());
  for (const std::uint32_t packet : node.packets) {
    const std::uint32_t unit = decider_[packet];
    row_of.push_back(unit == kNoRow ? kNoRow : row_of_unit[unit]);
  }
  return row_of;
}

/// The side of a mask, when neither it nor its other packets are few or most.
std::optional<FilterSide> CutChooser::side_of(const Node& node,
                                              const std::vector<std::uint32_t>& row_of,
                                              std::vector<Word> mask) const {
  const std::size_t words = mask.size();
  FilterSide side{std::move(mask), std::vector<bool>(node.rows.size()), {}, 0.0, 0.0};
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    if (!covers_all(node.rows.hull.mask[row], side.mask)) continue;
    side.row[row] = true;
    side.weight += node.weight[row];
  }
  if (side.weight < 0.1 * node.all_weight || side.weight > 0.9 * node.all_weight) {
    return std::nullopt;
  }
  const double most_strange = 0.3 * (node.all_weight - side.weight);
  KeyNumbers& keys = scratch_->keys;
  keys.restart(node.rows.size());
  for (std::size_t row = 0; row < node.rows.size(); ++row) {
    if (side.row[row]) keys.number(hash_under(node.rows.hull.value[row], side.mask.data(), words));
  }
  side.packet.resize(node.packets.size());
  for (std::size_t i = 0; i < node.packets.size(); ++i) {
    const Word* const packet = packets_[node.packets[i]];
    if (keys.lookup(hash_under(packet, side.mask.data(), words)) == kNoRow) continue;
    side.packet[i] = true;
    const bool own = row_of[i] != kNoRow && side.row[row_of[i]];
    if (!own) side.strange += packet_weight_[node.packets[i]];
    if (side.strange >= most_strange) return std::nullopt;
  }
  return side;
}

}  // namespace greynic::optimizer::chained
