#pragma once

/// What one field decides, as prefixes of which the longest wins: few of them, of few lengths.
///
/// Rules look at addresses and ports by any masks, and several of them stand for one set: all of 10.128/14 but
/// one /25 is eleven rules, one for each bit in which an address may differ. Read bit by bit, from the
/// highest down, they are a tree that says for each value what is decided; and of this tree, two prefixes: the
/// /25, and behind it the /14.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "greynic/core/match_field.h"

namespace greynic::optimizer::factored {

inline constexpr std::uint32_t kNothing = 0xffffffff;  ///< no rule decides

/// Trees over the bits of a field. Equal ones are one node, so equal decisions have equal numbers.
class DecisionTrees {
 public:
  [[nodiscard]] std::uint32_t leaf(std::uint32_t decision);
  [[nodiscard]] std::uint32_t both(std::uint32_t zero, std::uint32_t one);

  struct Node {
    std::uint32_t decision = kNothing;              ///< of a leaf
    std::uint32_t zero = kNothing, one = kNothing;  ///< nodes; none: a leaf
    [[nodiscard]] bool is_leaf() const { return zero == kNothing; }
  };
  [[nodiscard]] const Node& operator[](std::uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

 private:
  std::vector<Node> nodes_;
  std::map<std::uint32_t, std::uint32_t> leaves_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs_;
};

/// The bits of a field that some rule looks at, from the highest down. Prefixes are of these.
struct FieldBits {
  std::vector<U128> bit;  ///< by level
  [[nodiscard]] unsigned width() const { return static_cast<unsigned>(bit.size()); }
  /// The first `length` of them.
  [[nodiscard]] U128 first(unsigned length) const;
};
[[nodiscard]] FieldBits field_bits(U128 bits);

struct Prefix {
  U128 value = 0;
  unsigned length = 0;
  std::uint32_t decision = kNothing;
};

/// As few prefixes as decide what the tree does, the longest first; what misses all is decided as `missed`. None where
/// the tree has over a million ways to its leaves: what it tells apart is not prefixes.
/// Source: Draves, King, Venkatachary, Zill: Constructing optimal IP routing tables, INFOCOM 1999.
[[nodiscard]] std::optional<std::vector<Prefix>> prefixes_of(const DecisionTrees& trees,
                                                             std::uint32_t root,
                                                             const FieldBits& bits,
                                                             std::uint32_t missed);

/// What each length of prefixes decides, and what comes by and misses all, of the packets.
struct LengthWeights {
  std::map<unsigned, double> decided;
  double missed = 0.0;
};

/// Writes prefixes of some lengths out as longer ones, where the matchers that packets then try less are worth the
/// entries: `price` is what an entry must save. All lists share their matchers. `any_order`: no
/// prefix has to come before another, so those that decide most come first.
void write_out(std::vector<std::vector<Prefix>>& lists, const FieldBits& bits,
               const LengthWeights& weights, bool any_order, double price);

/// The first that matches in a list with the longest first; the list's size when none does.
[[nodiscard]] std::size_t longest_match(const std::vector<Prefix>& prefixes, const FieldBits& bits,
                                        U128 value);

}  // namespace greynic::optimizer::factored
