#include "src/search/difference.h"

#include <algorithm>
#include <queue>

#include "src/cover.h"
#include "src/search/splits.h"

namespace greynic::verify {
namespace {

constexpr std::size_t kMostNodes = 8'000'000;  // some 400 MB

/// Fields that many rules look at first.
std::vector<CubeBits> ordered_fields(const Pool& pool) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t field = 0; field < pool.fields.size(); ++field) {
    std::size_t lookers = 0;
    for (const std::uint32_t rule : pool.rules) {
      bool looks = false;
      for (std::size_t w = 0; w < pool.words; ++w) {
        looks = looks || (pool.fixed(rule)[w] & pool.fields[field][w]) != 0;
      }
      lookers += looks ? 1 : 0;
    }
    order.emplace_back(pool.rules.size() - lookers, field);
  }
  std::sort(order.begin(), order.end());
  std::vector<CubeBits> fields;
  for (const auto& entry : order) fields.push_back(pool.fields[entry.second]);
  return fields;
}

RuleIndex index_of(const Pool& pool) {
  RuleIndex index(pool, pool.rules);
  for (std::uint32_t rule = 0; rule < pool.rules.size(); ++rule) index.insert(rule);
  return index;
}

/// The bits of an entry that a region leaves open.
struct Open {
  Open(const Pool& pool, std::uint32_t entry, const Cube& region)
      : value(pool.value(entry), pool.value(entry) + pool.words),
        fixed(pool.fixed(entry), pool.fixed(entry) + pool.words) {
    for (std::size_t w = 0; w < pool.words; ++w) {
      value[w] &= ~region.fixed[w];
      fixed[w] &= ~region.fixed[w];
    }
  }
  CubeBits value;
  CubeBits fixed;
};

}  // namespace

DifferenceSearch::DifferenceSearch(const Pool& pool, const Places& places)
    : pool_(pool),
      places_(places),
      rules_(index_of(pool)),
      steps_(pool, places),
      fields_(ordered_fields(pool)),
      diagrams_(pool.words),
      most_nodes_(kMostNodes),
      reached_(places.size(), 0),
      node_of_(places.size(), 0) {}

Result<std::optional<Difference>> DifferenceSearch::find(const Cube& region, SearchLimits& limits) {
  limits_ = &limits;
  region_ = region;
  open_.clear();
  failure_.reset();
  settled_ = told_ = 0.0;
  tidy();
  const NodeId rules = rules_in(region);
  const bool equal = alike(rules, layout_in(region), 1.0);
  if (failure_) return tl::unexpected<Error>(*failure_);
  if (equal) return std::optional<Difference>{};
  return std::optional<Difference>{found_};
}

NodeId DifferenceSearch::rules_in(const Cube& region) {
  std::vector<std::uint32_t> met;
  rules_.meeting(region.value.data(), region.fixed.data(), kMiss, met, comparisons_);
  const auto last = std::find_if(met.begin(), met.end(), [&](std::uint32_t rule) {
    return contains(pool_, pool_.rules[rule], region);
  });
  if (last != met.end()) met.erase(last + 1, met.end());
  NodeId node = diagrams_.leaf(kMiss);
  for (auto rule = met.rbegin(); rule != met.rend(); ++rule) {
    const std::uint32_t entry = pool_.rules[*rule];
    const Open open(pool_, entry, region);
    const NodeId effect = diagrams_.leaf(pool_.entries[entry].effect);
    node = diagrams_.ask(open.value.data(), open.fixed.data(), effect, node);
  }
  return node;
}

NodeId DifferenceSearch::layout_in(const Cube& region) {
  struct Reached {
    PlaceId place;
    bool missed;                       ///< by some packet
    std::vector<std::uint32_t> steps;  ///< that some packet hits
  };
  // Ways lead from greater numbers to smaller ones: downwards to find what is reached, then back.
  std::vector<Reached> way;
  std::priority_queue<PlaceId> next;
  ++region_number_;
  const auto reach = [&](PlaceId place) {
    if (reached_[place] == region_number_) return;
    reached_[place] = region_number_;
    next.push(place);
  };
  reach(places_.start());
  for (; !next.empty(); ++comparisons_) {
    Reached here{next.top(), true, {}};
    next.pop();
    const Place& place = places_[here.place];
    if (here.place != kEnd && places_.looks_at(here.place, region)) {
      const Step* const hit = places_.find(here.place, region.value.data());
      here.missed = hit == nullptr;
      if (hit != nullptr) here.steps = {static_cast<std::uint32_t>(hit - place.steps.data())};
    } else if (here.place != kEnd) {
      steps_.meeting(here.place, region, here.steps, comparisons_);
    }
    for (const std::uint32_t step : here.steps) {
      if (place.steps[step].jumps) reach(place.steps[step].to);
    }
    if (here.place != kEnd && here.missed) reach(place.next);
    way.push_back(std::move(here));
  }
  for (auto here = way.rbegin(); here != way.rend(); ++here) {
    const Place& place = places_[here->place];
    const bool ends = here->place == kEnd || !here->missed;
    NodeId node = ends ? diagrams_.leaf(kMiss) : node_of_[place.next];
    for (auto number = here->steps.rbegin(); number != here->steps.rend(); ++number) {
      const Step& step = place.steps[*number];
      const NodeId yes =
          step.jumps ? node_of_[step.to] : diagrams_.leaf(pool_.entries[step.entry].effect);
      const Open open(pool_, step.entry, region);
      node = diagrams_.ask(open.value.data(), open.fixed.data(), yes, node);
    }
    node_of_[here->place] = node;
  }
  return node_of_[places_.start()];
}

/// What is left of the limits goes down with each pair.
bool DifferenceSearch::spend() {
  const std::uint64_t visits = diagrams_.visits();
  const std::uint64_t used = comparisons_ + visits - visits_;
  comparisons_ = 0;
  visits_ = visits;
  if (limits_->regions_left == 0 || used > limits_->comparisons_left) {
    failure_ = Error{ErrorCode::kTooBig,
                     limits_->regions_left == 0 ? "ran out of regions" : "ran out of comparisons"};
    return false;
  }
  --limits_->regions_left;
  limits_->comparisons_left -= used;
  return true;
}

bool DifferenceSearch::settled(double share) {
  settled_ += share;
  if (limits_->progress && settled_ - told_ >= 0.001) {
    told_ = settled_;
    limits_->progress(settled_);
  }
  return true;
}

/// Only what is looked at now is kept, when memory runs out.
void DifferenceSearch::tidy() {
  if (diagrams_.size() <= most_nodes_) return;
  diagrams_.keep(open_);
  known_.clear();
  most_nodes_ = std::max(kMostNodes, 2 * diagrams_.size());
}

/// Cubes that cut two nodes by what is asked of the first field that they look at.
std::vector<Cube> DifferenceSearch::cuts(NodeId rules, NodeId layout) {
  const auto looks = [&](const CubeBits& field) {
    bool found = false;
    for (std::size_t w = 0; w < pool_.words; ++w) {
      const auto looked_at = diagrams_.looked_at(rules)[w] | diagrams_.looked_at(layout)[w];
      found = found || (looked_at & field[w]) != 0;
    }
    return found;
  };
  const auto field = std::find_if(fields_.begin(), fields_.end(), looks);
  std::vector<Cube> asked;
  diagrams_.asked(rules, *field, true, asked);
  diagrams_.asked(layout, *field, false, asked);
  return split(asked);
}

/// Do two nodes treat all packets of the region alike? `share`: of the packet space.
bool DifferenceSearch::alike(NodeId rules, NodeId layout, double share) {
  if (rules == layout) return settled(share);
  if (diagrams_.is_leaf(rules) && diagrams_.is_leaf(layout)) {
    found_ = {region_, diagrams_.effect(rules), diagrams_.effect(layout)};
    return false;
  }
  const auto pair = [](NodeId a, NodeId b) { return std::uint64_t{a} << 32 | b; };
  if (known_.contains(pair(rules, layout))) return settled(share);
  if (!spend()) return false;
  const std::size_t here = open_.size();
  open_.insert(open_.end(), {rules, layout});
  const Cube around = region_;
  const std::vector<Cube> parts = cuts(rules, layout);
  for (const Cube& part : parts) {
    tidy();  // may number the nodes anew
    for (std::size_t w = 0; w < pool_.words; ++w) {
      region_.value[w] = around.value[w] | part.value[w];
      region_.fixed[w] = around.fixed[w] | part.fixed[w];
    }
    const NodeId left = diagrams_.within(open_[here], part);
    const NodeId right = diagrams_.within(open_[here + 1], part);
    if (!alike(left, right, share / static_cast<double>(parts.size()))) return false;
  }
  region_ = around;
  known_.insert(pair(open_[here], open_[here + 1]));
  open_.resize(here);
  return true;
}

}  // namespace greynic::verify
