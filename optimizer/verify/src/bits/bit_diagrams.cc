#include "src/bits/bit_diagrams.h"

#include <algorithm>
#include <unordered_map>

namespace greynic::verify {
namespace {

constexpr std::uint32_t kNoneValue = 0xffffffff;
constexpr std::uint32_t kAllValue = 0xfffffffe;
constexpr std::size_t kLeastDone = std::size_t{1} << 10;
constexpr std::size_t kMostDone = std::size_t{1} << 20;

}  // namespace

BitDiagrams::BitDiagrams(std::size_t most_nodes, std::uint64_t most_steps)
    : most_nodes_(most_nodes), most_steps_(most_steps), done_(kLeastDone) {
  node({kLeaf, kNoneValue, 0});
  node({kLeaf, kAllValue, 0});
}

FunctionId BitDiagrams::node(const Node& made) {
  const std::uint64_t hash = mixed(mixed(made.bit, made.zero), made.one);
  const auto fresh = static_cast<FunctionId>(nodes_.size());
  const FunctionId number = numbers_.find_or_add(hash, fresh, [&](FunctionId other) {
    const Node& held = nodes_[other];
    return held.bit == made.bit && held.zero == made.zero && held.one == made.one;
  });
  if (number == fresh) nodes_.push_back(made);
  return number;
}

FunctionId BitDiagrams::leaf(std::uint32_t value) { return node({kLeaf, value, 0}); }

FunctionId BitDiagrams::ask(std::uint32_t bit, FunctionId zero, FunctionId one) {
  if (zero == one) return zero;
  return ran_out() ? kNone : node({bit, zero, one});
}

BitDiagrams::Done& BitDiagrams::place_of(Operation operation, FunctionId a, FunctionId b) {
  if (done_.size() < kMostDone && nodes_.size() > done_.size()) done_.assign(4 * done_.size(), {});
  const auto number = static_cast<std::uint64_t>(operation);
  return done_[mixed(mixed(number, a), b) & (done_.size() - 1)];
}

FunctionId BitDiagrams::combined(Operation operation, FunctionId a, FunctionId b) {
  if (a == kNone) return operation == Operation::kWithin ? kNone : b;
  if (b == kNone) return operation == Operation::kWithin ? kNone : a;
  if (operation == Operation::kWithin && a == kAll) return b;
  if (operation == Operation::kEither) {
    if (a == kAll || b == kAll) return kAll;
    if (a == b) return a;
    if (a > b) std::swap(a, b);
  }
  const auto number = static_cast<std::uint32_t>(operation);
  const Done& known = place_of(operation, a, b);
  if (known.operation == number && known.a == a && known.b == b) return known.result;
  ++steps_;
  if (ran_out()) return kNone;
  const Node first = nodes_[a];
  const Node second = nodes_[b];
  const std::uint32_t bit = std::min(first.bit, second.bit);
  const FunctionId zero =
      combined(operation, first.bit == bit ? first.zero : a, second.bit == bit ? second.zero : b);
  const FunctionId one =
      combined(operation, first.bit == bit ? first.one : a, second.bit == bit ? second.one : b);
  const FunctionId result = ask(bit, zero, one);
  place_of(operation, a, b) = {a, b, number, result};  // the place may be another one by now
  return result;
}

FunctionId BitDiagrams::within(FunctionId set, FunctionId function) {
  return combined(Operation::kWithin, set, function);
}

FunctionId BitDiagrams::either(FunctionId one, FunctionId other) {
  return combined(Operation::kEither, one, other);
}

FunctionId BitDiagrams::known(FunctionId function, const KnownBits& bits) {
  std::uint32_t behind = 0;  // no bit from here on is known
  for (std::uint32_t bit = 0; bit < bits.size(); ++bit) {
    if (bits[bit] != kOpenBit) behind = bit + 1;
  }
  std::unordered_map<FunctionId, FunctionId> done;
  const auto left = [&](const auto& self, FunctionId at) -> FunctionId {
    const Node asks = nodes_[at];
    if (asks.bit >= behind) return at;
    if (bits[asks.bit] != kOpenBit) return self(self, bits[asks.bit] == 0 ? asks.zero : asks.one);
    if (const auto found = done.find(at); found != done.end()) return found->second;
    ++steps_;
    const FunctionId zero = self(self, asks.zero);
    const FunctionId one = self(self, asks.one);
    return done[at] = ask(asks.bit, zero, one);
  };
  return left(left, function);
}

BitDiagrams::Parts BitDiagrams::parts(FunctionId function) {
  std::unordered_map<FunctionId, Parts> done;
  const auto found = [&](const auto& self, FunctionId at) -> const Parts& {
    if (const auto held = done.find(at); held != done.end()) return held->second;
    const Node asks = nodes_[at];
    if (asks.bit == kLeaf) {
      return done[at] = at == kNone ? Parts{} : Parts{{asks.zero, kAll}};
    }
    const Parts& zero = self(self, asks.zero);  // stays where it is: the map keeps its nodes
    const Parts& one = self(self, asks.one);
    Parts both;
    auto z = zero.begin();
    auto o = one.begin();
    while (z != zero.end() || o != one.end()) {
      ++steps_;
      const bool in_zero = z != zero.end() && (o == one.end() || z->first <= o->first);
      const bool in_one = o != one.end() && (z == zero.end() || o->first <= z->first);
      const std::uint32_t value = in_zero ? z->first : o->first;
      both.emplace_back(value,
                        ask(asks.bit, in_zero ? z->second : kNone, in_one ? o->second : kNone));
      if (in_zero) ++z;
      if (in_one) ++o;
    }
    return done[at] = std::move(both);
  };
  return found(found, function);
}

std::vector<std::uint32_t> BitDiagrams::member(FunctionId set) const {
  std::vector<std::uint32_t> ones;
  while (nodes_[set].bit != kLeaf) {
    const Node& asks = nodes_[set];
    if (asks.zero == kNone) ones.push_back(asks.bit);
    set = asks.zero == kNone ? asks.one : asks.zero;
  }
  return ones;
}

}  // namespace greynic::verify
