#include "src/search/diagrams.h"

#include <algorithm>

namespace greynic::verify {
namespace {

enum class Relation { kApart, kInside, kOpen };

/// How packets of which some bits are known stand to a cube.
Relation relate(const Cube& known, const std::uint64_t* value, const std::uint64_t* fixed,
                std::size_t words) {
  std::uint64_t open = 0;
  for (std::size_t w = 0; w < words; ++w) {
    if (((value[w] ^ known.value[w]) & fixed[w] & known.fixed[w]) != 0) return Relation::kApart;
    open |= fixed[w] & ~known.fixed[w];
  }
  return open == 0 ? Relation::kInside : Relation::kOpen;
}

}  // namespace

NodeId Diagrams::node(const Node& made) {
  const std::uint64_t hash = mixed(mixed(made.cube, made.yes), made.no);
  const NodeId number =
      node_numbers_.find_or_add(hash, static_cast<NodeId>(nodes_.size()), [&](NodeId other) {
        const Node& held = nodes_[other];
        return held.cube == made.cube && held.yes == made.yes && held.no == made.no;
      });
  if (number < nodes_.size()) return number;
  nodes_.push_back(made);
  known_.emplace_back();
  for (std::size_t w = 0; w < words_; ++w) {
    const bool leaf = made.cube == kNoCube;
    looked_at_.push_back(
        leaf ? 0 : fixed(made.cube)[w] | looked_at(made.yes)[w] | looked_at(made.no)[w]);
  }
  return number;
}

std::uint32_t Diagrams::cube(const std::uint64_t* value_bits, const std::uint64_t* fixed_bits) {
  std::uint64_t hash = 0;
  for (std::size_t w = 0; w < words_; ++w) hash = mixed(mixed(hash, value_bits[w]), fixed_bits[w]);
  const auto fresh = static_cast<std::uint32_t>(seen_parts_.size());
  const std::uint32_t number = cube_numbers_.find_or_add(hash, fresh, [&](std::uint32_t other) {
    return std::equal(value_bits, value_bits + words_, value(other)) &&
           std::equal(fixed_bits, fixed_bits + words_, fixed(other));
  });
  if (number < fresh) return number;
  cubes_.insert(cubes_.end(), value_bits, value_bits + words_);
  cubes_.insert(cubes_.end(), fixed_bits, fixed_bits + words_);
  seen_parts_.push_back(0);
  return number;
}

NodeId Diagrams::leaf(std::uint32_t effect) { return node({kNoCube, effect, 0}); }

NodeId Diagrams::ask(const std::uint64_t* value_bits, const std::uint64_t* fixed_bits, NodeId yes,
                     NodeId no) {
  if (yes == no) return no;
  if (std::all_of(fixed_bits, fixed_bits + words_, [](std::uint64_t bits) { return bits == 0; })) {
    return yes;
  }
  const std::uint32_t asked_now = cube(value_bits, fixed_bits);
  if (nodes_[no].cube == asked_now) no = nodes_[no].no;  // it is asked already
  return yes == no ? no : node({asked_now, yes, no});
}

bool Diagrams::concerns(const Cube& cube, NodeId node) const {
  for (std::size_t w = 0; w < words_; ++w) {
    if ((looked_at(node)[w] & cube.fixed[w]) != 0) return true;
  }
  return false;
}

NodeId Diagrams::within(NodeId node, const Cube& cube) {
  ++now_;
  scratch_.resize(2 * words_);
  return left_of(node, cube);
}

/// Follows a chain to its end, or to what is known, and builds what is left from there back.
NodeId Diagrams::left_of(NodeId node, const Cube& known) {
  const std::size_t first = way_.size();
  while (known_[node].since != now_ && concerns(known, node)) {
    ++visits_;
    way_.push_back(node);
    const Node& asks = nodes_[node];
    const bool inside =
        relate(known, value(asks.cube), fixed(asks.cube), words_) == Relation::kInside;
    node = inside ? asks.yes : asks.no;
  }
  NodeId left = known_[node].since == now_ ? known_[node].result : node;
  for (; way_.size() > first; way_.pop_back()) {
    const NodeId at = way_.back();
    const Node asks = nodes_[at];
    if (relate(known, value(asks.cube), fixed(asks.cube), words_) == Relation::kOpen) {
      const NodeId yes = left_of(asks.yes, known);
      for (std::size_t w = 0; w < words_; ++w) {
        scratch_[w] = value(asks.cube)[w] & ~known.fixed[w];
        scratch_[words_ + w] = fixed(asks.cube)[w] & ~known.fixed[w];
      }
      left = ask(scratch_.data(), scratch_.data() + words_, yes, left);
    }
    known_[at] = {now_, left};
  }
  return left;
}

void Diagrams::asked(NodeId from, const CubeBits& mask, bool fresh, std::vector<Cube>& parts) {
  if (fresh) ++now_;
  const Cube of_mask{CubeBits(words_, 0), mask};
  scratch_.resize(2 * words_);
  way_.push_back(from);
  while (!way_.empty()) {
    const NodeId at = way_.back();
    way_.pop_back();
    if (known_[at].since == now_ || !concerns(of_mask, at)) continue;
    ++visits_;
    known_[at] = {now_, at};
    const Node asks = nodes_[at];
    way_.push_back(asks.no);
    way_.push_back(asks.yes);
    std::uint64_t some = 0;
    for (std::size_t w = 0; w < words_; ++w) {
      scratch_[w] = value(asks.cube)[w] & mask[w];
      scratch_[words_ + w] = fixed(asks.cube)[w] & mask[w];
      some |= scratch_[words_ + w];
    }
    if (some == 0) continue;
    const std::uint32_t part = cube(scratch_.data(), scratch_.data() + words_);
    if (seen_parts_[part] == now_) continue;
    seen_parts_[part] = now_;
    Cube& added = parts.emplace_back();
    added.value.assign(value(part), value(part) + words_);
    added.fixed.assign(fixed(part), fixed(part) + words_);
  }
}

void Diagrams::keep(std::vector<NodeId>& roots) {
  std::vector<bool> needed(nodes_.size(), false);
  for (const NodeId root : roots) needed[root] = true;
  for (std::size_t at = nodes_.size(); at-- > 0;) {
    if (!needed[at] || nodes_[at].cube == kNoCube) continue;
    needed[nodes_[at].yes] = true;
    needed[nodes_[at].no] = true;
  }
  Diagrams kept(words_);
  std::vector<NodeId> number(nodes_.size(), 0);
  for (NodeId at = 0; at < nodes_.size(); ++at) {
    if (!needed[at]) continue;
    const Node& held = nodes_[at];
    number[at] = held.cube == kNoCube ? kept.leaf(held.yes)
                                      : kept.ask(value(held.cube), fixed(held.cube),
                                                 number[held.yes], number[held.no]);
  }
  for (NodeId& root : roots) root = number[root];
  kept.visits_ = visits_;
  *this = std::move(kept);
}

}  // namespace greynic::verify
