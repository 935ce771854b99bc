#pragma once

/// One input table in all the ways there are, within what the device allows; the cheapest under its
/// traffic is taken.

#include <limits>

#include "greynic/core/layout_limits.h"
#include "src/chained/chained.h"
#include "src/entering.h"
#include "src/problem.h"

namespace greynic::optimizer {

/// Layout tables, and the mean of matchers tried in them.
struct Costed {
  std::vector<LayoutTable> tables;
  double cost = std::numeric_limits<double>::infinity();  ///< so, where a limit is not kept
  std::size_t p99 = 0;  ///< 99 % of the packets try at most so many
  double price = 0.0;   ///< of an entry, at which the search found tables that fit
};

/// What an input table may become.
struct TableRoom {
  std::uint32_t table = 0;       ///< id of the input table, which the first layout table keeps
  std::uint32_t first_free = 0;  ///< ids from here on are free for added tables
  std::size_t most_rules = 0;    ///< jumps included
  std::size_t most_tables = 0;   ///< that may be added
  LayoutLimits limits;           ///< recipes: those of this table
  bool quick = false;            ///< the first plan that fits is taken
  /// As in a pipeline, where few rules for special packets often keep one waiting that most come to.
  bool chains_as_made = false;
};

[[nodiscard]] RuleSet rules_of(const RuleSet& rules, const std::vector<std::uint32_t>& members);

[[nodiscard]] std::size_t recipes_of(const std::vector<LayoutTable>& tables,
                                     const LayoutLimits& limits);

class TablePlanner {
 public:
  /// `decider`: row of the problem by packet. All references must outlive the planner.
  TablePlanner(const RuleSet& rules, const Problem& problem, const Entering& entering,
               const Traffic& traffic, std::vector<std::uint32_t> decider, TableRoom room);

  /// For joined(): the table's rows with no rule in part, so that ranges are whole. The problem must
  /// outlive the planner.
  void compare_ranges(const Problem& whole, std::vector<std::uint32_t> decider);

  /// By cuts with a way back, with ranges and without where there are some; the cheaper first, but
  /// those with ranges behind that without where 99 % of the packets then try more, and many. Where
  /// some packets try many matchers, rules that much must come before are what they wait for: these
  /// leave the rests when more of that is listed, which elsewhere costs more copies than it saves.
  /// First plans tell how much is listed, and the search goes on there, or at both where they are
  /// nearly as good. `uniting`: rules are written out so that matchers become one.
  [[nodiscard]] std::vector<Costed> joined(spend::Uniting uniting = spend::Uniting::kAny,
                                           bool filters = true) const;

  /// The order given, a tree of cuts without a way back, or a chain.
  [[nodiscard]] Costed without_way_back(bool single_table);

  /// What these tables cost under the table's traffic.
  [[nodiscard]] Costed costed(std::vector<LayoutTable> tables) const;

  /// No single chain has fewer matchers; 0 where none was looked for.
  [[nodiscard]] std::size_t least_chain() const { return least_chain_; }

  /// No chain comes near these tables, nor is it worth a search for others: on every set measured,
  /// cuts without a way back saved less.
  [[nodiscard]] bool suffices(const Costed& layout) const;

 private:
  struct Found {
    Costed best;
    Costed other;   ///< with filters where the best has none, or without; may be empty
    Costed ranges;  ///< the best of masks, with ranges; may be empty
    Costed
        plain{};  ///< the best before it was refined, which may be easier to prove; empty where that gained nothing
  };
  /// `codes`: ports are ranges throughout; empty where the table has none. Else they become ranges in the end.
  [[nodiscard]] Found joined(const Problem& problem, const std::vector<std::uint32_t>& decider,
                             std::size_t most_ranges, bool codes, spend::Uniting uniting,
                             bool filters) const;
  [[nodiscard]] Found with_filters_and_without(chained::LaidOut made) const;
  [[nodiscard]] Found improved(std::vector<chained::TableAttempt> attempts, Found best) const;
  [[nodiscard]] Costed with_more_shared(chained::TableSearch& search, chained::TableOptions options,
                                        Costed best) const;
  void consider(bool single_table, Costed& best);
  [[nodiscard]] double missing_weight() const;

  const RuleSet& rules_;
  const Problem& problem_;
  const Entering& entering_;
  const Traffic& traffic_;
  std::vector<std::uint32_t> decider_;
  TableRoom room_;
  const Problem* whole_ = nullptr;  ///< null: no ranges
  std::vector<std::uint32_t> whole_decider_;
  std::size_t least_chain_ = 0;
};

}  // namespace greynic::optimizer
