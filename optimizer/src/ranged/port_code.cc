#include "src/ranged/port_code.h"

#include <algorithm>

namespace greynic::optimizer::ranged {

void PortCode::close(std::size_t bits) {
  bits_ = bits;
  const Span all = {0, static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1)};
  std::vector<Asked> asked;
  for (const auto& [span, units] : asked_) {
    if (span != all) asked.push_back({span, units});
  }
  asked_.clear();
  nodes_.push_back({all});
  grow(0, asked);
}

void PortCode::grow(std::uint32_t number, const std::vector<Asked>& asked) {
  if (asked.empty()) return;
  const Node node = nodes_[number];
  const std::uint32_t boundary = best_boundary(node, asked);
  for (const bool above : {false, true}) {
    Node next{node.ports, node.depth + 1, node.code};
    if (above) next.code |= bit_at(node.depth);
    (above ? next.ports.low : next.ports.high) = above ? boundary : boundary - 1;
    std::vector<Asked> part;
    for (const Asked& one : asked) {
      const Span cut = {std::max(one.ports.low, next.ports.low),
                        std::min(one.ports.high, next.ports.high)};
      if (cut.low <= cut.high && cut != next.ports) part.push_back({cut, one.units});
    }
    const auto place = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(next);
    (above ? nodes_[number].above : nodes_[number].below) = place;
    grow(place, part);
  }
}

/// The first port above what takes fewest units apart; of several, what has half of them on either side.
std::uint32_t PortCode::best_boundary(const Node& node, const std::vector<Asked>& asked) const {
  struct Side {
    std::int64_t begin = 0;  ///< units whose ports begin here
    std::int64_t end = 0;    ///< or ended just before
  };
  std::map<std::uint32_t, Side> sides;
  std::int64_t all = 0;
  for (const Asked& one : asked) {
    sides[one.ports.low].begin += one.units;
    sides[one.ports.high + 1].end += one.units;
    all += one.units;
  }
  sides.erase(node.ports.low);  // these begin with the node
  sides.erase(node.ports.high + 1);
  const std::size_t most = std::size_t{1} << (bits_ - node.depth - 1);  // leaves on one side
  std::int64_t begun = 0;
  std::int64_t ended = 0;
  for (const Asked& one : asked) begun += one.ports.low == node.ports.low ? one.units : 0;
  std::uint32_t best = 0;
  std::pair<std::int64_t, std::int64_t> best_cost;
  std::size_t number = 0;
  for (const auto& [port, side] : sides) {
    ended += side.end;
    const std::size_t leaves_below = ++number;
    const std::size_t leaves_above = sides.size() + 1 - leaves_below;
    const std::pair cost = {begun - ended, std::max(ended, all - begun)};
    begun += side.begin;
    if (leaves_below > most || leaves_above > most) continue;
    if (best == 0 || cost < best_cost) {
      best = port;
      best_cost = cost;
    }
  }
  return best;
}

std::uint32_t PortCode::code_of(std::uint32_t port) const {
  std::uint32_t at = 0;
  while (nodes_[at].below != 0) {
    const Node& above = nodes_[nodes_[at].above];
    at = port >= above.ports.low ? nodes_[at].above : nodes_[at].below;
  }
  return nodes_[at].code;
}

std::vector<Prefix> PortCode::prefixes_of(const Span& span) const {
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << bits_) - 1);
  std::vector<Prefix> prefixes;
  const auto visit = [&](const auto& self, std::uint32_t at) -> void {
    const Node& node = nodes_[at];
    if (node.ports.low > span.high || node.ports.high < span.low) return;
    if (span.low <= node.ports.low && node.ports.high <= span.high) {
      const bool leaf = node.below == 0 && at != 0;
      const auto open = static_cast<std::uint32_t>((std::uint64_t{1} << (bits_ - node.depth)) - 1);
      prefixes.push_back({node.code, leaf ? all : all & ~open});
      return;
    }
    self(self, node.below);
    self(self, node.above);
  };
  visit(visit, 0);
  return prefixes;
}

Span PortCode::span_of(const Prefix& prefix) const {
  std::uint32_t at = 0;
  while (nodes_[at].below != 0 && (prefix.mask & bit_at(nodes_[at].depth)) != 0) {
    const bool above = (prefix.value & bit_at(nodes_[at].depth)) != 0;
    at = above ? nodes_[at].above : nodes_[at].below;
  }
  return nodes_[at].ports;
}

}  // namespace greynic::optimizer::ranged
