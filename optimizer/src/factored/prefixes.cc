#include "src/factored/prefixes.h"

#include <algorithm>
#include <limits>
#include <set>

namespace greynic::optimizer::factored {
namespace {

constexpr unsigned kMostBitsMore = 12;          ///< a prefix is written out as at most 2^12
constexpr std::size_t kMostVisits = 1'000'000;  ///< of nodes of one tree

using Decisions = std::vector<std::uint32_t>;  // ascending

/// By node: what may be decided by default there with fewest prefixes below.
class Defaults {
 public:
  explicit Defaults(const DecisionTrees& trees) : trees_(trees) {}

  const Decisions& of(std::uint32_t node) {
    if (const auto known = known_.find(node); known != known_.end()) return known->second;
    Decisions found;
    if (trees_[node].is_leaf()) {
      found = {trees_[node].decision};
    } else {
      const Decisions zero = of(trees_[node].zero);
      const Decisions& one = of(trees_[node].one);
      std::set_intersection(zero.begin(), zero.end(), one.begin(), one.end(),
                            std::back_inserter(found));
      if (found.empty()) {
        std::set_union(zero.begin(), zero.end(), one.begin(), one.end(), std::back_inserter(found));
      }
    }
    return known_.emplace(node, std::move(found)).first->second;
  }

 private:
  const DecisionTrees& trees_;
  std::map<std::uint32_t, Decisions> known_;
};

class PrefixWriter {
 public:
  PrefixWriter(const DecisionTrees& trees, const FieldBits& bits)
      : trees_(trees), defaults_(trees), bits_(bits) {}

  std::optional<std::vector<Prefix>> run(std::uint32_t root, std::uint32_t missed) {
    write(root, {0, 0, missed});
    if (visits_ > kMostVisits) return std::nullopt;
    std::ranges::stable_sort(made_, std::greater{}, &Prefix::length);
    return std::move(made_);
  }

 private:
  /// `at.decision`: what is decided there by default.
  void write(std::uint32_t node, Prefix at) {
    if (++visits_ > kMostVisits) return;
    const Decisions& ways = defaults_.of(node);
    if (!std::ranges::binary_search(ways, at.decision)) {
      at.decision = ways.front();
      made_.push_back(at);
    }
    if (trees_[node].is_leaf()) return;
    const U128 here = bits_.bit[at.length++];
    write(trees_[node].zero, at);
    at.value |= here;
    write(trees_[node].one, at);
  }

  const DecisionTrees& trees_;
  Defaults defaults_;
  const FieldBits& bits_;
  std::size_t visits_ = 0;
  std::vector<Prefix> made_;
};

/// Lengths that stay, and what they then decide.
class Lengths {
 public:
  Lengths(const std::vector<std::vector<Prefix>>& lists, const LengthWeights& weights,
          bool any_order, double price)
      : weights_(weights), any_order_(any_order), price_(price) {
    for (const auto& list : lists) {
      for (const Prefix& prefix : list) ++count_[prefix.length];
    }
    for (const auto& entry : count_) stay_.insert(entry.first);
  }

  std::set<unsigned> run() {
    double now = cost(stay_);
    while (stay_.size() > 1) {
      double best = now;
      unsigned leaves = 0;
      for (const unsigned length : stay_) {
        if (length == *stay_.rbegin()) continue;
        std::set<unsigned> without = stay_;
        without.erase(length);
        if (const double there = cost(without); there < best) {
          best = there;
          leaves = length;
        }
      }
      if (!(best < now)) break;
      now = best;
      stay_.erase(leaves);
    }
    return stay_;
  }

 private:
  [[nodiscard]] double cost(const std::set<unsigned>& stay) const {
    std::map<unsigned, double, std::greater<>> decided;
    for (const unsigned length : stay) decided[length] = 0.0;
    double entries = 0.0;
    for (const auto& [length, count] : count_) {
      const unsigned to = *stay.lower_bound(length);
      if (to - length > kMostBitsMore) return std::numeric_limits<double>::infinity();
      entries += static_cast<double>(count) * static_cast<double>(1U << (to - length));
      const auto found = weights_.decided.find(length);
      if (found != weights_.decided.end()) decided[to] += found->second;
    }
    std::vector<double> order;
    for (const auto& entry : decided) order.push_back(entry.second);
    if (any_order_) std::ranges::sort(order, std::greater{});
    double tried = weights_.missed * static_cast<double>(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) tried += order[i] * static_cast<double>(i + 1);
    return tried + price_ * entries;
  }

  const LengthWeights& weights_;
  bool any_order_;
  double price_;
  std::map<unsigned, std::size_t> count_;
  std::set<unsigned> stay_;
};

}  // namespace

std::uint32_t DecisionTrees::leaf(std::uint32_t decision) {
  const auto [place, fresh] =
      leaves_.try_emplace(decision, static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back({decision});
  return place->second;
}

std::uint32_t DecisionTrees::both(std::uint32_t zero, std::uint32_t one) {
  if (zero == one && nodes_[zero].is_leaf()) return zero;  // else a level would be lost
  const auto [place, fresh] =
      pairs_.try_emplace({zero, one}, static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back({kNothing, zero, one});
  return place->second;
}

U128 FieldBits::first(unsigned length) const {
  U128 all = 0;
  for (unsigned level = 0; level < length; ++level) all |= bit[level];
  return all;
}

FieldBits field_bits(U128 bits) {
  FieldBits found;
  for (U128 one = U128{1} << 127; one != 0; one >>= 1) {
    if ((bits & one) != 0) found.bit.push_back(one);
  }
  return found;
}

std::optional<std::vector<Prefix>> prefixes_of(const DecisionTrees& trees, std::uint32_t root,
                                               const FieldBits& bits, std::uint32_t missed) {
  return PrefixWriter(trees, bits).run(root, missed);
}

void write_out(std::vector<std::vector<Prefix>>& lists, const FieldBits& bits,
               const LengthWeights& weights, bool any_order, double price) {
  const std::set<unsigned> stay = Lengths(lists, weights, any_order, price).run();
  for (auto& list : lists) {
    std::vector<Prefix> made;
    std::set<std::pair<unsigned, U128>> taken;
    for (const Prefix& prefix : list) {  // the longest first: what stands there wins
      const unsigned to = *stay.lower_bound(prefix.length);
      for (std::uint64_t number = 0; number < std::uint64_t{1} << (to - prefix.length); ++number) {
        U128 value = prefix.value;
        for (unsigned level = prefix.length; level < to; ++level) {
          if ((number >> (to - 1 - level) & 1) != 0) value |= bits.bit[level];
        }
        if (taken.emplace(to, value).second) made.push_back({value, to, prefix.decision});
      }
    }
    std::ranges::stable_sort(made, std::greater{}, &Prefix::length);
    list = std::move(made);
  }
}

std::size_t longest_match(const std::vector<Prefix>& prefixes, const FieldBits& bits, U128 value) {
  unsigned length = 0;
  U128 under = 0;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    if (i == 0 || prefixes[i].length != length) under = bits.first(length = prefixes[i].length);
    if (((value ^ prefixes[i].value) & under) == 0) return i;
  }
  return prefixes.size();
}

}  // namespace greynic::optimizer::factored
