#include "src/recipes/held.h"

#include <algorithm>
#include <set>

#include "src/key_table.h"

namespace greynic::optimizer::recipes {
namespace {

using Members = std::vector<std::uint32_t>;

/// Rules beyond are left to software: who stands before whom is looked at pair by pair.
constexpr std::size_t kMostRows = 20'000;

/// A mask adds a matcher for all that come by; below this share of the packets it is not worth one.
constexpr double kLeastGain = 1e-4;

class Choice {
 public:
  Choice(const Problem& problem, const Entering& packets, const Members& decider,
         const LayoutLimits& limits)
      : problem_(problem),
        packets_(packets),
        decider_(decider),
        limits_(limits),
        words_(problem.rows.words()),
        weight_(problem.rows.size(), 0.0) {
    for (std::size_t i = 0; i < decider.size(); ++i) {
      if (decider[i] != kNoRow) weight_[decider[i]] += packets.weight[i];
    }
    find_blockers();
    groups_ = groups_by_mask(problem, considered_);
    group_of_.assign(problem.rows.size(), kNoRow);
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      for (const std::uint32_t row : groups_[g].rows) group_of_[row] = g;
      cost_.push_back(recipes(mask_of(problem_.rows, groups_[g].rows.front())));
    }
    open_.assign(groups_.size(), false);
    held_.assign(problem.rows.size(), false);
  }

  Held run(std::size_t kept_back, std::size_t most_masks) {
    std::size_t left = limits_.most_recipes - std::min(limits_.most_recipes, kept_back);
    Held held;
    if (most_masks == 0) return held;
    // A mask of all bits takes any flow; where it is too wide, flows go under masks of rules.
    std::vector<Word> all(words_, 0);
    for (const Group& group : groups_) {
      const Word* const mask = problem_.rows.mask[group.rows.front()];
      for (std::size_t w = 0; w < words_; ++w) all[w] |= mask[w];
    }
    const std::size_t for_all = recipes(all);
    const bool any_flow = for_all <= limits_.most_chained && for_all <= left;
    if (any_flow) left -= for_all;
    std::vector<std::uint32_t> order;
    while (order.size() + (any_flow ? 1 : 0) < most_masks) {
      const std::uint32_t best = best_group(left, !any_flow);
      if (best == kNoRow) break;
      left -= cost_[best];
      order.push_back(best);
      open(best, !any_flow);
    }
    for (const std::uint32_t group : order) {
      held.masks.push_back(mask_of(problem_.rows, groups_[group].rows.front()));
    }
    for (std::uint32_t row = 0; row < held_.size(); ++row) {
      if (held_[row]) held.rows.push_back(row);
    }
    if (any_flow) held.masks.insert(held.masks.begin(), all);
    add_cuts(held);
    return held;
  }

 private:
  [[nodiscard]] std::size_t recipes(const std::vector<Word>& mask) const {
    return limits_.recipes(problem_.columns.unpack_mask(mask.data()));
  }

  void find_blockers() {
    Members rows(problem_.rows.size());
    for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
    if (rows.size() > kMostRows) {
      std::stable_sort(rows.begin(), rows.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return weight_[a] > weight_[b]; });
      rows.resize(kMostRows);
      std::sort(rows.begin(), rows.end());
    }
    considered_ = rows;
    blockers_.resize(problem_.rows.size());
    dependents_.resize(problem_.rows.size());
    missing_.assign(problem_.rows.size(), 0);
    const Ternaries& t = problem_.rows;
    for (const std::uint32_t row : rows) {
      for (std::uint32_t other = 0; other < row; ++other) {
        if (problem_.effect[other] == problem_.effect[row] ||
            !overlap(t.value[other], t.mask[other], t.value[row], t.mask[row], words_)) {
          continue;
        }
        blockers_[row].push_back(other);
        dependents_[other].push_back(row);
      }
      missing_[row] = blockers_[row].size();
    }
  }

  /// Packets that a mask would take from software. Rules that one other mask stands before count when
  /// that is the one.
  [[nodiscard]] double gain(std::uint32_t group, bool with_flows) const {
    double sum = 0.0;
    for (const std::uint32_t row : groups_[group].rows) {
      if (missing_[row] == 0) sum += weight_[row];
      for (const std::uint32_t later : dependents_[row]) {
        if (held_[later] || missing_[row] > 0 || !is_open(later) || missing_[later] != 1) continue;
        sum += weight_[later];
      }
    }
    if (!with_flows) return sum;
    const Word* const mask = problem_.rows.mask[groups_[group].rows.front()];
    for (std::uint32_t i = 0; i < decider_.size(); ++i) {
      const std::uint32_t row = decider_[i];
      if (row == kNoRow || held_[row] || flow_held(i) || group_of_[row] == kNoRow) continue;
      if (group_of_[row] == group && missing_[row] == 0) continue;  // counted
      if (fits(i, mask)) sum += packets_.weight[i];
    }
    return sum;
  }

  [[nodiscard]] bool is_open(std::uint32_t row) const {
    return group_of_[row] != kNoRow && open_[group_of_[row]];
  }
  [[nodiscard]] bool flow_held(std::uint32_t packet) const {
    return !flow_held_.empty() && flow_held_[packet];
  }

  /// The packet's rule looks at no other bits, and no rule before it meets what agrees under the mask.
  [[nodiscard]] bool fits(std::uint32_t packet, const Word* mask) const {
    const std::uint32_t row = decider_[packet];
    const Ternaries& t = problem_.rows;
    for (std::size_t w = 0; w < words_; ++w) {
      if ((t.mask[row][w] & ~mask[w]) != 0) return false;
    }
    return std::ranges::all_of(blockers_[row], [&](std::uint32_t other) {
      return !overlap(packets_.packets[packet], mask, t.value[other], t.mask[other], words_);
    });
  }

  [[nodiscard]] std::uint32_t best_group(std::size_t left, bool with_flows) const {
    std::uint32_t best = kNoRow;
    double most = 0.0;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      if (open_[g] || cost_[g] > left || cost_[g] > limits_.most_chained) continue;
      const double sum = gain(g, with_flows);
      const double each = sum / static_cast<double>(cost_[g]);
      if (sum < kLeastGain || each <= most) continue;
      most = each;
      best = g;
    }
    return best;
  }

  void open(std::uint32_t group, bool with_flows) {
    open_[group] = true;
    Members ready;
    for (const std::uint32_t row : groups_[group].rows) {
      if (missing_[row] == 0) ready.push_back(row);
    }
    while (!ready.empty()) {
      const std::uint32_t row = ready.back();
      ready.pop_back();
      held_[row] = true;
      for (const std::uint32_t later : dependents_[row]) {
        if (--missing_[later] == 0 && is_open(later) && !held_[later]) ready.push_back(later);
      }
    }
    if (!with_flows) return;
    flow_held_.resize(decider_.size(), false);
    const Word* const mask = problem_.rows.mask[groups_[group].rows.front()];
    for (std::uint32_t i = 0; i < decider_.size(); ++i) {
      const std::uint32_t row = decider_[i];
      if (row == kNoRow || held_[row] || flow_held_[i] || group_of_[row] == kNoRow) continue;
      if (fits(i, mask)) flow_held_[i] = true;
    }
  }

  /// Flows of rules that are not held, each once, under the first mask that fits.
  void add_cuts(Held& held) const {
    std::vector<std::set<std::vector<Word>>> known(held.masks.size());
    std::vector<Word> bits(words_);
    for (std::uint32_t i = 0; i < decider_.size(); ++i) {
      const std::uint32_t row = decider_[i];
      if (row == kNoRow || held_[row] || group_of_[row] == kNoRow) continue;
      for (std::uint32_t m = 0; m < held.masks.size(); ++m) {
        if (!fits(i, held.masks[m].data())) continue;
        for (std::size_t w = 0; w < words_; ++w) {
          bits[w] = packets_.packets[i][w] & held.masks[m][w];
        }
        if (known[m].insert(bits).second) held.cuts.push_back({row, i, m});
        break;
      }
    }
  }

  const Problem& problem_;
  const Entering& packets_;
  const Members& decider_;
  const LayoutLimits& limits_;
  std::size_t words_;
  std::vector<double> weight_;  ///< of the packets that a row decides
  Members considered_;
  std::vector<Members> blockers_;    ///< rows that win over a row, overlap it and do something else
  std::vector<Members> dependents_;  ///< the other way round
  std::vector<std::size_t> missing_;  ///< blockers that are not held
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  ///< by row; kNoRow for those left to software
  std::vector<std::size_t> cost_;        ///< recipes, by group
  std::vector<bool> open_;               ///< by group
  std::vector<bool> held_;               ///< by row
  std::vector<bool> flow_held_;          ///< by packet, once masks of rules take flows
};

}  // namespace

Held choose_held(const Problem& problem, const Entering& packets, const Members& decider,
                 const LayoutLimits& limits, std::size_t kept_back, std::size_t most_masks) {
  return Choice(problem, packets, decider, limits).run(kept_back, most_masks);
}

}  // namespace greynic::optimizer::recipes
