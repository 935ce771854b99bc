#pragma once

/// Two matchers of a table as one that looks at the bits of both: entries that look at fewer are written out for
/// each value of the others, and packets behind it try one matcher less. An entry for a /30 is four for /32s.
/// Jumps are written out as other entries are.

#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "src/spend/offer.h"

namespace greynic::optimizer::spend {

class Unions {
 public:
  /// `effect`: by unit; units of the same may change places. All must outlive it.
  Unions(chained::Plan& plan, Entrances& entrances, const std::vector<std::uint32_t>& effect,
         bool few_stay_few);

  /// What is worth most, of all that takes no more than `room` entries.
  [[nodiscard]] std::optional<Offer> best(double room);
  /// Does what was offered last.
  Taken take();
  /// The matchers of the table, or what comes to them, were changed by others.
  void look_at(std::uint32_t table);
  /// Offers what is best in the table.
  void offer(std::uint32_t table, double room);

 private:
  /// The first matchers of a table.
  struct Table {
    std::vector<double> weight;      ///< share of the packets that each decides
    std::vector<std::int8_t> order;  ///< of each two: whether they may change places; kUnknown
    /// Of ports as ranges: entries that a pair takes as one; infinite where it cannot.
    std::map<std::pair<std::size_t, std::size_t>, double> price;
    std::uint32_t version = 0;
    [[nodiscard]] std::size_t size() const { return weight.size(); }
  };
  struct Pair {
    Offer offer;
    std::size_t first = 0;
    std::size_t second = 0;
    bool up = true;  ///< it stands where the first stood
    std::uint32_t version = 0;
    bool operator<(const Pair& other) const { return offer < other.offer; }
  };

  [[nodiscard]] bool may_swap(std::uint32_t table, std::size_t a, std::size_t b);
  /// By matcher: how far up it may go, and how far down.
  void find_reach(std::uint32_t table, std::vector<std::size_t>& up,
                  std::vector<std::size_t>& down);
  void unite(std::uint32_t number, const Pair& pair);
  [[nodiscard]] Pair best_pair(std::uint32_t table, double room);
  void count_entrances(const chained::PlanMatcher& matcher, std::int32_t by);

  chained::Plan& plan_;
  Entrances& entrances_;
  const std::vector<std::uint32_t>& effect_;
  bool few_stay_few_;
  std::vector<Table> tables_;
  std::priority_queue<Pair> offers_;
};

}  // namespace greynic::optimizer::spend
