#include "hardware/cacheflow.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

namespace greynic::bench {
namespace {

std::vector<std::size_t> order_of(const RuleSet& rules) {
  std::vector<std::size_t> order(rules.rules.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rules.rules[a].priority < rules.rules[b].priority;
  });
  return order;
}

bool same_actions(const FlowRule& a, const FlowRule& b) {
  const auto drops = [](const FlowRule& rule) {
    return rule.actions.empty() || rule.actions == std::vector<Action>{Action::drop()};
  };
  return a.actions == b.actions || (drops(a) && drops(b));
}

/// Ranks are places in the rules' order.
class Cache {
 public:
  Cache(const RuleSet& rules, const std::vector<double>& weight, std::size_t entries)
      : rules_(rules), order_(order_of(rules)), entries_(entries), blockers_(order_.size()) {
    for (const std::size_t rule : order_) weight_.push_back(weight[rule]);
  }

  void fill() {
    struct Offer {
      double density;
      std::size_t rank;
      bool operator<(const Offer& other) const {
        return density != other.density ? density < other.density : rank > other.rank;
      }
    };
    std::priority_queue<Offer> offers;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      if (weight_[rank] > 0.0)
        offers.push({weight_[rank], rank});  // at one entry, the most there is
    }
    while (!offers.empty() && used() < entries_) {
      const Offer offer = offers.top();
      offers.pop();
      if (cached_.contains(offer.rank)) continue;
      const Way way = better_way(offer.rank);
      if (way.density < offer.density * (1.0 - 1e-12)) {
        if (way.density > 0.0) offers.push({way.density, offer.rank});
        continue;
      }
      cached_.insert(way.rules.begin(), way.rules.end());
      covers_.insert(way.covers.begin(), way.covers.end());
      for (const std::size_t rank : cached_) covers_.erase(rank);
    }
  }

  [[nodiscard]] RuleSet hardware(std::uint32_t slow_table) const {
    RuleSet made{{}, rules_.source};
    std::set<std::size_t> all = cached_;
    all.insert(covers_.begin(), covers_.end());
    for (const std::size_t rank : all) {
      made.rules.push_back(rules_.rules[order_[rank]]);
      if (!cached_.contains(rank)) made.rules.back().actions = {Action::jump(slow_table)};
    }
    FlowRule rest;
    rest.table = rules_.rules.front().table;
    rest.actions = {Action::jump(slow_table)};
    made.rules.push_back(std::move(rest));
    for (std::size_t i = 0; i < made.rules.size(); ++i) {
      made.rules[i].priority = static_cast<RulePriority>(i);
    }
    return made;
  }

 private:
  struct Way {
    double density = 0.0;
    std::vector<std::size_t> rules;
    std::vector<std::size_t> covers;
  };

  [[nodiscard]] std::size_t used() const { return cached_.size() + covers_.size(); }
  [[nodiscard]] const FlowRule& rule(std::size_t rank) const { return rules_.rules[order_[rank]]; }

  const std::vector<std::size_t>& blockers_of(std::size_t rank) {
    auto& known = blockers_[rank];
    if (known) return *known;
    known.emplace();
    for (std::size_t other = 0; other < rank; ++other) {
      if (!same_actions(rule(other), rule(rank)) && rule(other).match.overlaps(rule(rank).match)) {
        known->push_back(other);
      }
    }
    return *known;
  }

  [[nodiscard]] std::size_t room() const { return entries_ - used(); }

  Way dependent_set(std::size_t rank) {
    Way way;
    std::set<std::size_t> seen = {rank};
    std::vector<std::size_t> left = {rank};
    double weight = 0.0;
    while (!left.empty()) {
      const std::size_t next = left.back();
      left.pop_back();
      way.rules.push_back(next);
      weight += weight_[next];
      if (way.rules.size() > room()) return {};
      for (const std::size_t blocker : blockers_of(next)) {
        if (!cached_.contains(blocker) && seen.insert(blocker).second) left.push_back(blocker);
      }
    }
    way.density = weight / static_cast<double>(way.rules.size());
    return way;
  }

  Way cover_set(std::size_t rank) {
    Way way;
    way.rules.push_back(rank);
    const auto& blockers = blockers_of(rank);
    for (const std::size_t blocker : blockers) {
      if (cached_.contains(blocker) || covers_.contains(blocker)) continue;
      const bool inside = std::any_of(blockers.begin(), blockers.end(), [&](std::size_t other) {
        return other != blocker && rule(other).match.contains(rule(blocker).match) &&
               !cached_.contains(other);
      });
      if (!inside) way.covers.push_back(blocker);
      if (way.covers.size() + 1 > room()) return {};
    }
    way.density = weight_[rank] / static_cast<double>(1 + way.covers.size());
    return way;
  }

  Way better_way(std::size_t rank) {
    Way covered = cover_set(rank);
    Way whole = dependent_set(rank);
    return whole.density >= covered.density ? whole : covered;
  }

  const RuleSet& rules_;
  std::vector<std::size_t> order_;
  std::vector<double> weight_;  ///< by rank
  std::size_t entries_;
  std::vector<std::optional<std::vector<std::size_t>>> blockers_;
  std::set<std::size_t> cached_;
  std::set<std::size_t> covers_;
};

struct MatchHash {
  std::size_t operator()(const Match& match) const { return match.hash(); }
};

Match under(const Packet& packet, const Mask& mask) {
  Match match;
  for (const FieldMask& entry : mask.fields()) {
    match.set(entry.field, packet.value(entry.field) & entry.bits, entry.bits);
  }
  return match;
}

}  // namespace

RuleSet cacheflow_rules(const RuleSet& rules, const std::vector<double>& weight,
                        std::size_t entries, std::uint32_t slow_table) {
  Cache cache(rules, weight, entries - 1);  // one entry sends all else to software
  cache.fill();
  return cache.hardware(slow_table);
}

std::vector<std::size_t> deciders(const RuleSet& rules, const Traffic& traffic) {
  const auto order = order_of(rules);
  std::map<Mask, std::unordered_map<Match, std::size_t, MatchHash>> rank_of;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const Match& match = rules.rules[order[rank]].match;
    rank_of[match.mask()].try_emplace(match, rank);
  }
  std::vector<std::size_t> found;
  for (const TrafficFlow& flow : traffic.flows) {
    std::size_t best = order.size();
    for (const auto& [mask, ranks] : rank_of) {
      const auto hit = ranks.find(under(flow.packet, mask));
      if (hit != ranks.end()) best = std::min(best, hit->second);
    }
    found.push_back(best < order.size() ? order[best] : best);
  }
  return found;
}

}  // namespace greynic::bench
