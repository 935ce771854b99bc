#include "src/joined/rules_side.h"

#include <algorithm>

namespace greynic::verify {

RulesSide::RulesSide(const std::vector<const FlowRule*>& rules, const Onward& onward)
    : onward_(onward), rules_(static_cast<std::uint32_t>(rules.size())) {
  nodes_.reserve(rules.size());
  for (const FlowRule* rule : rules) nodes_.push_back({&rule->match, &plain(rule->actions), {}});
}

std::vector<std::uint32_t> RulesSide::ways() const {
  std::vector<std::uint32_t> ways;
  for (std::uint32_t rule = 0; rule < rules_; ++rule) add_ways(rule, ways);
  return ways;
}

void RulesSide::add_ways(std::uint32_t way, std::vector<std::uint32_t>& ways) const {
  if (!nodes_[way].opened) {
    ways.push_back(way);
    return;
  }
  for (const std::uint32_t behind : nodes_[way].behind) add_ways(behind, ways);
}

void RulesSide::look_behind(std::uint32_t way) {
  if (!nodes_[way].behind.empty() || is_full()) return;
  const Seen seen = (*this)[way];
  if (!onward_.next(seen.actions)) return;
  behind_.push_back(ways_behind({seen.match, seen.actions}));
  for (const Way& further : behind_.back()) {
    nodes_[way].behind.push_back(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.push_back({&further.match, &further.actions, {}});
  }
}

std::vector<Way> RulesSide::ways_behind(const Way& way) {
  auto ways = onward_.one_table_on(way, bytes_left_);
  if (!ways) {
    bytes_left_ = 0;
    return {};
  }
  for (const Way& further : *ways) bytes_left_ -= std::min(bytes_left_, bytes_of(further.actions));
  return std::move(*ways);
}

void RulesSide::count_behind(const Actions& actions) { (void)ways_behind({{}, actions}); }

void RulesSide::mark_open(std::uint32_t way) {
  if (nodes_[way].opened) return;
  nodes_[way].opened = true;
  const Actions actions = *nodes_[way].actions;
  if (++opened_[actions] != kMany || looked_through_ > kMostLookedThrough) return;
  // What misses the next table keeps its actions, and is not asked again.
  const std::size_t known = nodes_.size();
  looked_through_ += known;
  for (std::uint32_t other = 0; other < known; ++other) {
    if (nodes_[other].opened || *nodes_[other].actions != actions) continue;
    look_behind(other);
    nodes_[other].opened = !nodes_[other].behind.empty();
  }
}

bool RulesSide::open(std::uint32_t way) {
  look_behind(way);
  if (nodes_[way].behind.empty()) return false;
  mark_open(way);
  return true;
}

bool RulesSide::open_until(std::uint32_t way, const Packet& packet, const Actions& wanted) {
  std::vector<std::uint32_t> passed;
  while (*nodes_[way].actions != wanted) {
    look_behind(way);
    const auto& behind = nodes_[way].behind;
    const auto hit = std::find_if(behind.begin(), behind.end(), [&](std::uint32_t further) {
      return nodes_[further].match->matches(packet);
    });
    // What misses the next table has the same actions as before.
    if (hit == behind.end() || *nodes_[*hit].actions == *nodes_[way].actions) return false;
    passed.push_back(way);
    way = *hit;
  }
  for (const std::uint32_t one : passed) mark_open(one);
  return true;
}

}  // namespace greynic::verify
