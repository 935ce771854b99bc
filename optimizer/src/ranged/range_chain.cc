#include "src/ranged/range_chain.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "src/chain.h"
#include "src/key_table.h"
#include "src/ranged/matchers.h"

namespace greynic::optimizer::ranged {

using chained::Conflicts;
using chained::Node;
using chained::PlanMatcher;
using chained::Slot;
using chained::Units;

namespace {

constexpr std::size_t kMostBoxes = 4;  // that a unit may become to give way to others

class RangeChain {
 public:
  RangeChain(const Units& units, const Node& node)
      : units_(units), node_(node), count_(node.rows.size()), boxes_(count_) {
    find_masks();
    for (std::uint32_t row = 0; row < count_; ++row) boxes_[row] = boxes_of(row);
    give_way();
  }

  std::vector<PlanMatcher> run() {
    find_blockers();
    release_all();
    std::vector<double> weights;
    std::vector<std::uint32_t> group_of(count_, kNoRow);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      weights.push_back(0.0);
      for (const std::uint32_t row : groups_[group]) {
        group_of[row] = group;
        weights.back() += node_.weight[row];
      }
    }
    BitMatrix before(groups_.size());
    for (std::uint32_t row = 0; row < count_; ++row) {
      for (const std::uint32_t later : holds_back_[row]) before.set(group_of[row], group_of[later]);
    }
    std::vector<PlanMatcher> chain;
    for (const std::uint32_t group : order_groups(weights, before)) {
      chain.push_back(matcher_of(groups_[group]));
    }
    return chain;
  }

 private:
  /// Numbers the masks without what is compared as ranges.
  void find_masks() {
    const std::size_t words = units_.ranged.size();
    std::map<std::vector<Word>, std::uint32_t> known;
    for (std::uint32_t row = 0; row < count_; ++row) {
      std::vector<Word> mask(words);
      for (std::size_t w = 0; w < words; ++w) {
        mask[w] = node_.rows.hull.mask[row][w] & ~units_.ranged[w];
      }
      const auto [place, fresh] =
          known.try_emplace(mask, static_cast<std::uint32_t>(masks_.size()));
      if (fresh) {
        masks_.push_back(std::move(mask));
        rows_of_mask_.emplace_back();
      }
      mask_of_.push_back(place->second);
      rows_of_mask_[place->second].push_back(row);
    }
  }

  /// The ports of a unit: all of a field that is not compared as a range.
  [[nodiscard]] std::vector<Spans> boxes_of(std::uint32_t row) const {
    std::array<std::vector<Span>, kPortFields> spans;
    for (std::size_t i = 0; i < kPortFields; ++i) {
      const Slot& slot = units_.slot[i];
      std::vector<Prefix> prefixes = {{0, 0}};
      const std::uint32_t set = node_.rows.ports[row][i];
      if (units_.as_range[i] && set != 0) prefixes = units_.sets[set];
      if (units_.as_range[i] && set == 0) {
        prefixes = {{slot.get(node_.rows.hull.value[row]), slot.get(node_.rows.hull.mask[row])}};
      }
      std::vector<Span> ports;
      for (const Prefix& prefix : prefixes) {
        ports.push_back(units_.as_range[i] ? units_.code[i].span_of(prefix) : Span{0, slot.all()});
      }
      std::sort(ports.begin(), ports.end());
      for (const Span& span : ports) {
        if (!spans[i].empty() && spans[i].back().high + 1 == span.low) {
          spans[i].back().high = span.high;
        } else {
          spans[i].push_back(span);
        }
      }
    }
    std::vector<Spans> boxes;
    for (const Span& source : spans[0]) {
      for (const Span& destination : spans[1]) boxes.push_back({source, destination});
    }
    return boxes;
  }

  /// Units give way to those before them that differ in ports only.
  void give_way() {
    for (const auto& rows : rows_of_mask_) {
      ByMask<std::vector<std::uint32_t>> alike;  // by the bits under the mask
      for (const std::uint32_t row : rows) {
        const std::vector<Word>& mask = masks_[mask_of_[row]];
        std::vector<Word> bits(mask.size());
        for (std::size_t w = 0; w < mask.size(); ++w) {
          bits[w] = node_.rows.hull.value[row][w] & mask[w];
        }
        auto& earlier = alike[std::move(bits)];
        for (const std::uint32_t other : earlier) {
          if (disjoint(boxes_[row], boxes_[other])) continue;
          std::vector<Spans> left = without(boxes_[row], boxes_[other]);
          if (left.size() <= kMostBoxes || left.size() <= boxes_[row].size()) {
            boxes_[row] = std::move(left);
          }
        }
        earlier.push_back(row);
      }
    }
  }

  void find_blockers() {
    holds_back_.resize(count_);
    blockers_.assign(count_, 0);
    const Conflicts conflicts = chained::conflicts_of(units_, node_.rows, count_);
    for (std::uint32_t row = 0; row < count_; ++row) {
      for (const std::uint32_t before : conflicts.before(row)) {
        if (disjoint(boxes_[before], boxes_[row])) continue;
        holds_back_[before].push_back(row);
        ++blockers_[row];
      }
    }
  }

  /// Masks of which nothing is held back leave first; then that of which the largest share is free.
  void release_all() {
    std::vector<std::vector<std::uint32_t>> left = rows_of_mask_;
    std::size_t open = 0;
    for (auto& rows : left) {
      std::erase_if(rows, [&](std::uint32_t row) { return boxes_[row].empty(); });
      open += rows.empty() ? 0 : 1;
    }
    while (open > 0) {
      std::size_t best = 0;
      double best_share = -1.0;
      double best_weight = -1.0;
      for (std::size_t mask = 0; mask < left.size(); ++mask) {
        if (left[mask].empty()) continue;
        std::size_t free = 0;
        double weight = 0.0;
        for (const std::uint32_t row : left[mask]) {
          if (blockers_[row] > 0) continue;
          ++free;
          weight += node_.weight[row];
        }
        const double share = static_cast<double>(free) / static_cast<double>(left[mask].size());
        if (share < best_share || (share == best_share && weight <= best_weight)) continue;
        best = mask;
        best_share = share;
        best_weight = weight;
      }
      std::vector<std::uint32_t> group;
      std::vector<std::uint32_t> rest;
      for (const std::uint32_t row : left[best]) {
        (blockers_[row] == 0 ? group : rest).push_back(row);
      }
      for (const std::uint32_t row : group) {
        for (const std::uint32_t later : holds_back_[row]) --blockers_[later];
      }
      groups_.push_back(std::move(group));
      left[best] = std::move(rest);
      if (left[best].empty()) --open;
    }
  }

  [[nodiscard]] PlanMatcher matcher_of(const std::vector<std::uint32_t>& group) const {
    const Word* const mask = masks_[mask_of_[group.front()]].data();
    PlanMatcher matcher = matcher_on(units_, mask);
    for (const std::uint32_t row : group) {
      const auto parts = static_cast<double>(boxes_[row].size());
      for (const Spans& box : boxes_[row]) {
        Word* const value = matcher.values.add();
        for (std::size_t w = 0; w < units_.ranged.size(); ++w) {
          value[w] = node_.rows.hull.value[row][w] & ~units_.ranged[w];
        }
        matcher.entries.push_back(
            {node_.rows.unit[row], chained::kNowhere, node_.weight[row] / parts, box});
      }
    }
    return matcher;
  }

  const Units& units_;
  const Node& node_;
  std::uint32_t count_;
  std::vector<std::vector<Spans>> boxes_;  ///< by row
  std::vector<std::vector<Word>> masks_;
  std::vector<std::uint32_t> mask_of_;  ///< by row
  std::vector<std::vector<std::uint32_t>> rows_of_mask_;
  std::vector<std::vector<std::uint32_t>> holds_back_;  ///< by row: later rows
  std::vector<std::uint32_t> blockers_;                 ///< by row: those not yet released
  std::vector<std::vector<std::uint32_t>> groups_;
};

}  // namespace

std::vector<chained::PlanMatcher> range_chain(const Units& units, const Node& node) {
  return RangeChain(units, node).run();
}

}  // namespace greynic::optimizer::ranged
