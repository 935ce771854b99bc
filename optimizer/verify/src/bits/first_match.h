#pragma once

/// Lists of which the first that matches decides, as diagrams of bits.
///
/// The list is split by the first bit that any of its rules still asks for. What a rule asks for from some bit
/// on is one thing however many rules say it, so what is left of the list for one address and for another is the same
/// list when both have the same ports; and a list that was split before is not split again.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/bits/bit_diagrams.h"

namespace greynic::verify {

class FirstMatch {
 public:
  explicit FirstMatch(BitDiagrams& diagrams) : diagrams_(diagrams) {}

  /// The bits that a rule asks for, ascending, and what each must be.
  using Asked = std::vector<std::pair<std::uint32_t, bool>>;

  /// Behind all that was added before.
  void add(const Asked& asked, std::uint32_t value);
  /// What the rules do, and `missed` what none of them matches. Then all rules are forgotten.
  FunctionId take(std::uint32_t missed);

 private:
  using List = std::vector<std::uint32_t>;  ///< of tails, first wins
  static constexpr std::uint32_t kEnd = 0xffffffff;
  /// What a rule asks for from a bit on.
  struct Tail {
    std::uint32_t bit = kEnd;
    bool one = false;
    std::uint32_t next = 0;
    std::uint32_t value = 0;  ///< in the end
    bool operator==(const Tail&) const = default;
  };
  struct Hash {
    std::size_t operator()(const List& list) const {
      std::uint64_t hash = list.size();
      for (const std::uint32_t tail : list) hash = mixed(hash, tail);
      return hash;
    }
  };
  std::uint32_t tail(const Tail& made);
  void tidy(List& list);
  FunctionId split(List list);
  FunctionId split_at_first_bit(const List& list);
  FunctionId split_at_run(const List& list, std::size_t asker, std::uint32_t end);

  BitDiagrams& diagrams_;
  List rules_;
  std::vector<Tail> tails_;
  HashedNumbers numbers_;
  std::vector<std::uint32_t> seen_;  ///< by tail: the list that had it
  std::uint32_t now_ = 0;
  std::uint32_t missed_ = 0;
  std::unordered_map<List, FunctionId, Hash> done_;
  std::size_t kept_ = 0;  ///< tails in `done_`
};

}  // namespace greynic::verify
