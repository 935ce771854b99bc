/// CutChooser::best_filter: packets that some long rules may match are told from those that none
/// can, where rules of two fields stand against each other.

#include <algorithm>

#include "src/chained/cut.h"

namespace greynic::optimizer::chained {
namespace {

/// One side of a filter: the rows that look at all bits of a mask, and the packets that have the
/// bits of one of them.
struct Side {
  std::vector<Word> mask;
  std::vector<bool> row;     ///< by row
  std::vector<bool> packet;  ///< by position in the node's packets
  double weight = 0.0;       ///< that the rows decide
  double strange = 0.0;      ///< of packets that have the bits, though other rows decide them
};

constexpr std::size_t kFewBlockers = 2;

/// Ranges in a filter save more on a few sets, but few of these layouts are proven.
bool looks_at_part_of_code(const Units& units, const std::vector<Word>& mask) {
  for (std::size_t i = 0; i < kPortFields; ++i) {
    const std::uint32_t bits = units.slot[i].get(mask.data());
    if (units.as_range[i] && bits != 0 && bits != units.slot[i].all()) return true;
  }
  return false;
}

/// Some of the rows that others must come before, and what holds them back.
class Bound {
 public:
  /// `of_row`: by row, whether it is one of them.
  Bound(const Units& units, const Node& node, const std::vector<bool>& of_row)
      : number_(node.rows.size(), kNoRow) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
      if (of_row[row]) all.push_back(row);
    }
    constexpr std::size_t kLookedAt = 256;
    const std::size_t step = all.size() / kLookedAt + 1;
    for (std::size_t i = 0; i < all.size(); i += step) {
      number_[all[i]] = static_cast<std::uint32_t>(before_.size());
      before_.push_back(all_before(units, node, all[i]));
    }
  }
  /// By row, kNoRow for those that are not looked at.
  [[nodiscard]] const std::vector<std::uint32_t>& numbers() const { return number_; }
  /// By number: would few rows be in the way without those of the side?
  [[nodiscard]] std::vector<bool> freed_without(const Side& side) const {
    std::vector<bool> freed;
    for (const auto& before : before_) {
      const auto stay = std::count_if(before.begin(), before.end(),
                                      [&](std::uint32_t row) { return !side.row[row]; });
      freed.push_back(static_cast<std::size_t>(stay) <= kFewBlockers);
    }
    return freed;
  }

 private:
  /// Conflicts lists only some where there are many.
  static std::vector<std::uint32_t> all_before(const Units& units, const Node& node,
                                               std::uint32_t row) {
    if (node.conflicts.many[row] == 0) {
      const auto listed = node.conflicts.before(row);
      return {listed.begin(), listed.end()};
    }
    std::vector<std::uint32_t> before;
    for (std::uint32_t other = 0; other < row; ++other) {
      const bool same = units.effect[node.rows.unit[other]] == units.effect[node.rows.unit[row]];
      if (!same && units.overlap(node.rows, other, node.rows, row)) before.push_back(other);
    }
    return before;
  }
  std::vector<std::uint32_t> number_;
  std::vector<std::vector<std::uint32_t>> before_;
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

  const std::size_t words = units_.problem->columns.words();
  std::vector<std::uint32_t> row_of(node.packets.size(), kNoRow);
  {
    std::vector<std::uint32_t> row_of_unit(units_.rows.size(), kNoRow);
    for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
      row_of_unit[node.rows.unit[row]] = row;
    }
    for (std::size_t i = 0; i < node.packets.size(); ++i) {
      const std::uint32_t unit = decider_[node.packets[i]];
      if (unit != kNoRow) row_of[i] = row_of_unit[unit];
    }
  }
  std::vector<Side> sides;
  KeyNumbers& keys = scratch_->keys;
  for (auto& mask : candidates(node, 6)) {
    if (looks_at_part_of_code(units_, mask)) continue;
    Side side{std::move(mask), std::vector<bool>(node.rows.size()),
              std::vector<bool>(node.packets.size()), 0.0, 0.0};
    keys.restart(node.rows.size());
    for (std::size_t row = 0; row < node.rows.size(); ++row) {
      if (!covers_all(node.rows.hull.mask[row], side.mask)) continue;
      side.row[row] = true;
      side.weight += node.weight[row];
      keys.number(hash_under(node.rows.hull.value[row], side.mask.data(), words));
    }
    if (side.weight < 0.1 * node.all_weight || side.weight > 0.9 * node.all_weight) continue;
    for (std::size_t i = 0; i < node.packets.size(); ++i) {
      side.packet[i] =
          keys.lookup(hash_under(packets_[node.packets[i]], side.mask.data(), words)) != kNoRow;
      const bool own = row_of[i] != kNoRow && side.row[row_of[i]];
      if (side.packet[i] && !own) side.strange += packet_weight_[node.packets[i]];
    }
    if (side.strange < 0.3 * (node.all_weight - side.weight)) sides.push_back(std::move(side));
  }
  std::sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
    return a.weight - a.strange > b.weight - b.strange;
  });
  constexpr std::size_t kSides = 8;
  if (sides.size() > kSides) sides.resize(kSides);
  if (sides.size() < 2) return std::nullopt;

  const Bound bound(units_, node, is_bound);
  std::vector<std::vector<bool>> freed_without;
  for (const Side& side : sides) freed_without.push_back(bound.freed_without(side));
  std::optional<Filter> best;
  double best_freed = 0.4 * bound_weight;
  for (std::size_t a = 0; a < sides.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      double freed = 0.0;
      double looked_at = 0.0;
      for (std::size_t i = 0; i < node.packets.size(); ++i) {
        const std::uint32_t number = row_of[i] == kNoRow ? kNoRow : bound.numbers()[row_of[i]];
        if (number == kNoRow) continue;
        const double weight = packet_weight_[node.packets[i]];
        looked_at += weight;
        const bool in_a = sides[a].packet[i];
        if (in_a && sides[b].packet[i]) continue;
        if (freed_without[in_a ? b : a][number]) freed += weight;
      }
      if (looked_at > 0.0) freed *= bound_weight / looked_at;
      if (freed <= best_freed) continue;
      best_freed = freed;
      best = Filter{sides[a].mask, sides[b].mask};
    }
  }
  const double entries = 3.0 * static_cast<double>(node.rows.size());
  if (best && kGain * best_freed < entries * entry_price_) return std::nullopt;
  return best;
}

}  // namespace greynic::optimizer::chained
