#include "src/space/port_code.h"

#include <algorithm>

namespace greynic::verify {
namespace {

constexpr unsigned kMostBits = 16;

}  // namespace

void PortCode::look_at(const PortSpan& span) { ++asked_[span]; }

void PortCode::close() {
  std::vector<Asked> asked;
  for (const auto& [ports, rules] : asked_) {
    if (ports.low > 0) boundaries_.push_back(ports.low);
    if (ports.high < kLastPort) boundaries_.push_back(ports.high + 1);
    if (ports.low < ports.high) asked.push_back({ports, rules});  // one port is never taken apart
  }
  std::sort(boundaries_.begin(), boundaries_.end());
  boundaries_.erase(std::unique(boundaries_.begin(), boundaries_.end()), boundaries_.end());
  grow({{}, 0, 0}, asked);
  for (const Node& node : nodes_) bits_ = std::max(bits_, node.depth);
  for (Node& node : nodes_) node.code >>= kMostBits - bits_;
}

std::uint32_t PortCode::grow(Node node, const std::vector<Asked>& asked) {
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(node);
  const std::uint32_t boundary = best_boundary(node, asked);
  if (boundary == 0) return id;
  const auto side = [&](const PortSpan& ports, std::uint32_t bit) {
    std::vector<Asked> here;
    for (const Asked& span : asked) {
      const PortSpan part{std::max(span.ports.low, ports.low),
                          std::min(span.ports.high, ports.high)};
      if (part.low < part.high && part != ports) here.push_back({part, span.rules});
    }
    const std::uint32_t code = node.code | bit << (kMostBits - node.depth - 1);
    return grow({ports, node.depth + 1, code}, here);
  };
  const std::uint32_t below = side({node.ports.low, boundary - 1}, 0);
  const std::uint32_t above = side({boundary, node.ports.high}, 1);
  nodes_[id].below = below;
  nodes_[id].above = above;
  return id;
}

/// Of those that take the fewest rules apart, the one nearest to the middle; 0: there is none.
std::uint32_t PortCode::best_boundary(const Node& node, const std::vector<Asked>& asked) const {
  const auto begin = std::upper_bound(boundaries_.begin(), boundaries_.end(), node.ports.low);
  const auto end = std::upper_bound(begin, boundaries_.end(), node.ports.high);
  const auto count = static_cast<std::size_t>(end - begin);
  if (count == 0) return 0;
  // Rules that go across each boundary, from where they begin and where they end.
  std::vector<std::int64_t> across(count + 1, 0);
  for (const Asked& span : asked) {
    const auto first = std::upper_bound(begin, end, span.ports.low) - begin;
    const auto last = std::upper_bound(begin, end, span.ports.high) - begin;
    across[static_cast<std::size_t>(first)] += span.rules;
    across[static_cast<std::size_t>(last)] -= span.rules;
  }
  // n boundaries part n + 1 leaves, and both sides must get by with the bits that are left.
  const std::size_t most = (std::size_t{1} << (kMostBits - node.depth - 1)) - 1;
  std::size_t best = count / 2;
  std::int64_t fewest = INT64_MAX;
  std::size_t nearest = count;
  std::int64_t here = 0;
  for (std::size_t i = 0; i < count; ++i) {
    here += across[i];
    const std::size_t longer = std::max(i, count - 1 - i);
    if (longer > most || here > fewest || (here == fewest && longer >= nearest)) continue;
    best = i;
    fewest = here;
    nearest = longer;
  }
  return begin[static_cast<std::ptrdiff_t>(best)];
}

std::vector<PortCode::Prefix> PortCode::prefixes_of(const PortSpan& span) const {
  std::vector<Prefix> found;
  const std::uint32_t all = (std::uint32_t{1} << bits_) - 1;
  std::vector<std::uint32_t> open = {0};
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    if (node.ports.high < span.low || node.ports.low > span.high) continue;
    if (span.low <= node.ports.low && node.ports.high <= span.high) {
      found.push_back({node.code, all & ~(all >> node.depth)});
      continue;
    }
    open.push_back(node.above);
    open.push_back(node.below);
  }
  return found;
}

std::uint32_t PortCode::port_of(std::uint32_t code) const {
  std::uint32_t at = 0;
  while (nodes_[at].below != 0) {
    const bool one = (code >> (bits_ - nodes_[at].depth - 1) & 1) != 0;
    at = one ? nodes_[at].above : nodes_[at].below;
  }
  return nodes_[at].ports.low;
}

}  // namespace greynic::verify
