#pragma once

/// What grow_plan works with: the nodes still to be grown, and the plan so far. It also keeps what was decided on
/// large nodes, so that what is below one of them can be grown again from another step.

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "src/chained/cut.h"
#include "src/chained/grow.h"
#include "src/chained/key_numbers.h"
#include "src/ranged/matchers.h"
#include "src/ranged/range_chain.h"

namespace greynic::optimizer::chained {

/// What can be done with a node: a guard, or a cut by a mask.
struct Step {
  bool guard = false;
  std::vector<Word> mask;
  bool operator==(const Step&) const = default;
};

/// Jumps that lead to a table, and that may lead on from there or from its rests.
struct Way {
  std::size_t jumps;
  std::size_t most;
  [[nodiscard]] bool open() const { return jumps + 3 <= most; }
  [[nodiscard]] bool one_more() const { return jumps < most; }
  /// A part gets some of what is left, so that there is some for the rest.
  [[nodiscard]] Way into_part() const { return {jumps + 1, jumps + 1 + (most - jumps) / 4}; }
};

/// A node that was cut, or that could have been, and where its matchers went.
struct Decision {
  std::shared_ptr<const Node> node;
  std::uint32_t table;
  std::uint32_t exit;
  Way way;
  std::size_t matchers;      ///< in the table before
  std::uint32_t above;       ///< the decision that led here; kNowhere: none
  std::optional<Step> step;  ///< none: a filter, or a chain
  bool gone = false;         ///< one above it was made otherwise
};

/// Which steps to try: the `cheapest` cuts, a guard, and up to `most` cuts in all of which each looks at fields that
/// none before it does. No cut costs more than `dearest` times as much as the first.
struct StepsAt {
  std::size_t cheapest;
  std::size_t most;
  double dearest;
};

class Grower {
 public:
  Grower(Units& units, const Rows& packets, const std::vector<double>& packet_weight,
         const std::vector<std::uint32_t>& decider, const GrowOptions& options)
      : units_(units),
        packets_(packets),
        packet_weight_(packet_weight),
        decider_(decider),
        options_(options),
        filters_(options.filters),
        chooser_(units, packets, packet_weight, decider, options.entry_price),
        local_(units.rows.size(), kNoRow),
        row_inside_(units.rows.size(), kNoRow) {}

  Grown run(const Conflicts& conflicts);

  /// The plan alone; false when it has too many rules, or costs too much.
  bool grow_whole(const Conflicts& conflicts);

  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }

  /// By decision: matchers tried behind it, beyond the one that each packet tries at least; 0 when it is gone.
  [[nodiscard]] std::vector<double> tried_behind() const;

  /// Steps that look cheap, in order, with the guard behind the cheapest.
  [[nodiscard]] std::vector<Step> steps_at(std::uint32_t decision, const StepsAt& wanted) const;

  /// Grows what is behind a decision again, from the step at hand, or from what looks cheapest where that is null.
  /// The new decision; none when the step comes to nothing, and the plan cannot be used any more.
  std::optional<std::uint32_t> regrow(std::uint32_t decision, const Step* step, double entry_price,
                                      double most_cost);

  [[nodiscard]] GrownPlan grown() const { return {plan_, quick_}; }
  [[nodiscard]] double cost_at(double entry_price) const {
    return tried_in(plan_) + entry_price * static_cast<double>(entries_of(plan_));
  }
  [[nodiscard]] bool too_many_rules() const { return entries_ > options_.most_rules; }
  [[nodiscard]] std::size_t work() const { return work_; }

 private:
  [[nodiscard]] Node whole(const Conflicts& conflicts) const;

  /// What waits to be grown takes as many matchers as a rule of thumb says, and an entry for each row.
  [[nodiscard]] bool too_much() const {
    const auto entries = static_cast<double>(entries_ + waiting_rows_);
    return refused_ || too_many_rules() ||
           tried_ + waiting_ + options_.entry_price * entries > options_.most_cost;
  }
  void put_off(Node& node);
  void take_up(Node& node) {
    waiting_ -= std::exchange(node.waiting, 0.0);
    waiting_rows_ -= std::exchange(node.waiting_rows, 0);
  }

  std::uint32_t new_table();
  [[nodiscard]] std::size_t tables() const { return plan_.size() - free_.size(); }

  /// Takes what is behind a decision out of the plan.
  void take_out(std::uint32_t decision);

  /// Where the first filter on the way to a node came, and what is in the plan since.
  struct Fork {
    Node node;
    std::uint32_t table;
    std::uint32_t exit;
    Way way;
    std::size_t matchers;  ///< in the table before
    std::size_t entries;   ///< by the filter and all behind it
    double tried;          ///< there
    std::size_t begin;     ///< of the tables that were added
    std::size_t end = 0;
  };

  void leave_filters_out();

  std::size_t grow_filtered(Node node, const Filter& filter, std::uint32_t table,
                            std::uint32_t exit, Way way);

  /// Puts the matchers of a node into a table, at the end of what is there. The most jumps that
  /// lead to the tables that jump to the exit.
  std::size_t grow(Node node, std::uint32_t table, std::uint32_t exit, Way way);
  std::size_t grow_on(Node node, std::uint32_t table, std::uint32_t exit, Way way);

  /// Keeps the decision to come; its number, or kNowhere.
  std::uint32_t keep(const Node& node, std::uint32_t table, std::uint32_t exit, Way way);

  /// Takes the step that is asked for; false where it comes to nothing.
  bool begin_as_told(Node& node, std::uint32_t& table, std::uint32_t exit, Way& way,
                     std::size_t& deepest);

  [[nodiscard]] bool room_for_tables() const { return tables() < options_.most_tables; }

  void scout(Node& node);

  /// What of the conflicts of a node is left in a region inside of it, of its rows `from`.
  void inherit(const Node& node, std::vector<std::uint32_t> from, Node& inside, Meeting meeting) {
    from.resize(inside.rows.size());
    inside.conflicts = conflicts_within(units_, node.conflicts, node.rows, inside.rows, from,
                                        meeting, row_inside_);
  }

  [[nodiscard]] double missing(const Node& node) const {
    double hit = 0.0;
    for (const double weight : node.weight) hit += weight;
    return std::max(0.0, node.all_weight - hit);
  }

  /// The node as a chain, the end of its table; `hoped`: what it tries, roughly.
  void finish(const Node& node, double hoped, std::uint32_t table);

  void put_chain(WrittenOut written, std::uint32_t table);

  /// Puts the cut into the table and grows its parts. What is left to do goes to `rest`, in a table
  /// of its own when parts come back to it: then `table` becomes that one. False when the cut comes
  /// to nothing.
  bool make_cut(Node& node, const std::vector<Word>& mask, std::uint32_t& table, std::uint32_t exit,
                Node& rest, Way& way, std::size_t& deepest);

  /// Puts the guard into the table, and grows what jumps away; what is behind it.
  Node put_guard(Node node, const Guard& guard, std::uint32_t table, std::uint32_t exit,
                 const Way& way, std::size_t& deepest);

  /// Sends the packets that some row of `mask` may match to a new table. Into `with` and `without`
  /// go the packets with and without the bits of such a row; `without` loses these rows.
  std::uint32_t send_away(const Node& node, const std::vector<Word>& mask, std::uint32_t table,
                          Node& with, Node& without);

  /// Puts the filter into the table, and grows what jumps away. What is left is decided by the rows
  /// that do not look at all bits of the first mask.
  Node put_filter(Node node, const Filter& filter, std::uint32_t table, std::uint32_t exit,
                  const Way& way, std::size_t& deepest);

  Units& units_;
  const Rows& packets_;
  const std::vector<double>& packet_weight_;
  const std::vector<std::uint32_t>& decider_;
  GrowOptions options_;
  bool filters_;                ///< may be put in
  const Step* told_ = nullptr;  ///< still to be taken
  bool refused_ = false;        ///< it came to nothing
  CutChooser chooser_;
  std::vector<std::uint32_t> local_;       ///< by unit: its row in the node at hand
  std::vector<std::uint32_t> row_inside_;  ///< for inherit
  KeyNumbers kinds_;                       ///< for scout
  KeyNumbers classes_;                     ///< for scout
  KeyNumbers part_keys_;                   ///< for make_cut
  Plan plan_;
  std::vector<QuickChain> quick_;
  std::vector<Decision> decisions_;
  std::uint32_t deciding_ = kNowhere;  ///< the decision whose parts and rest are grown
  std::vector<std::uint32_t> owner_;   ///< by table: the decision that made it
  std::vector<std::uint32_t> free_;    ///< tables that were taken out
  std::size_t entries_ = 0;            ///< of the matchers so far
  double tried_ = 0.0;                 ///< in them
  std::size_t waiting_rows_ = 0;       ///< of nodes still to be grown
  double waiting_ = 0.0;               ///< of their packets
  std::size_t work_ = 0;
  bool filtered_ = false;
  std::vector<Fork> forks_;
};

}  // namespace greynic::optimizer::chained
