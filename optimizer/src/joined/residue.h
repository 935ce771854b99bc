#pragma once

/// What packets of which much is known may still meet in later tables.

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "src/joined/pipeline.h"

namespace greynic::optimizer::joined {

/// Lists of actions that packets did, numbered: what is known behind each, and what each rule adds.
class Deeds {
 public:
  /// Tables from `first_added` on must be jumped to with nothing else done on the way. The pipeline must outlive it.
  /// `with_misses`: Pipeline::added_with_misses().
  Deeds(const Pipeline& pipeline, std::uint32_t first_added, std::set<std::uint32_t> with_misses)
      : pipeline_(pipeline), first_added_(first_added), with_misses_(std::move(with_misses)) {}

  struct Deed {
    std::vector<Action> actions;
    std::optional<std::uint32_t> next;  ///< table that can be looked into behind them
    bool may_stop = false;              ///< may a rule of the layout do this and no more?
    Cube set;                           ///< bits that they set
  };
  [[nodiscard]] std::uint32_t number(const std::vector<Action>& actions);
  /// After these, those of a rule where they lead.
  [[nodiscard]] std::uint32_t followed_by(std::uint32_t deed, std::uint32_t rule);
  [[nodiscard]] const Deed& operator[](std::uint32_t deed) const { return deeds_[deed]; }

 private:
  static constexpr std::size_t kMostLookedInto = 8192;  ///< rules of a table

  const Pipeline& pipeline_;
  std::uint32_t first_added_;
  std::set<std::uint32_t> with_misses_;
  std::deque<Deed> deeds_;
  std::map<std::vector<Action>, std::uint32_t> known_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> after_;
};

/// Some of the packets, and all that is done to them up to a table of the pipeline or to the end.
struct Rest {
  Cube cube;  ///< what is asked of them beyond what is known
  std::uint32_t deed = 0;
  std::vector<std::uint32_t>
      rules;  ///< of the set, that they come by; one for each table looked into
};
using Residue = std::vector<Rest>;  // first wins

/// Follows packets of one entrance: of one cube, from where nothing was done to them.
class Follower {
 public:
  using Ranks = std::map<std::uint32_t, std::size_t>;  ///< of tables, rising along all jumps

  /// All that is given must outlive it.
  Follower(const Pipeline& pipeline, const Ranks& ranks, Deeds& deeds, Cube entrance)
      : pipeline_(pipeline), ranks_(ranks), deeds_(deeds), entrance_(std::move(entrance)) {}

  /// What becomes of those packets in the cube that did `deed`, in tables of rank below `end`. The residue
  /// asks for what neither cube nor entrance knows. Empty where that is too much.
  [[nodiscard]] Residue follow(const Cube& cube, std::uint32_t deed, std::size_t end);
  /// The ranks of all tables that were looked into so far.
  [[nodiscard]] const std::set<std::size_t>& ranks_met() const { return ranks_met_; }

 private:
  static constexpr std::size_t kMostRests = 64;

  /// Adds what becomes of the packets of `rest`; false, and nothing added, where it cannot be written.
  bool expand(const Rest& rest, Residue& residue);
  /// Rows that packets of the entrance may meet behind actions that set `set`.
  const std::vector<std::uint32_t>& rows_met(std::uint32_t table, const Cube& set);

  const Pipeline& pipeline_;
  const Ranks& ranks_;
  Deeds& deeds_;
  Cube entrance_;
  std::map<std::pair<std::uint32_t, Cube>, std::vector<std::uint32_t>> rows_met_;
  std::set<std::size_t> ranks_met_;
  // While following:
  Cube known_;
  std::size_t end_ = 0;
};

/// Places of what does something that those behind would not do.
[[nodiscard]] std::vector<std::size_t> needed(const Residue& residue);

/// The same asked and done?
[[nodiscard]] bool alike(const Residue& a, const Residue& b);

}  // namespace greynic::optimizer::joined
