#pragma once

/// Lays out rules so that packets try fewer matchers and every packet gets the same actions.
///
/// How:
///   1. Rules that no packet can hit are left out.
///   2. Rules of equal mask share one matcher, across priorities. A rule may move ahead of another
///      only when no packet matches both, or when both do the same.
///   3. Matchers that decide more traffic are tried earlier.
///   4. A table is cut where that pays, unless single_table is set: one coarse matcher sends each
///      packet by a jump to a small table. Two searches look for cuts, and the cheaper layout is
///      taken: in the one, small tables hold all rules that their packets can still match
///      (optimizer/src/cut_tree.h); in the other, what a small table does not decide jumps back to
///      a rest that many share (optimizer/src/chained/grow.h). The number of rules grows by at most
///      max_growth.
///   5. The finished layout is proven equivalent: in the first case by an overlap scan
///      (optimizer/src/scan/proof.h), and by the verifier where that scan shows too little; in the
///      second by the verifier (greynic/verify/verify.h), within a bounded number of comparisons.
///      Where that does not suffice, the first search's layout is taken. A layout that is not
///      proven is never returned.
///
/// Example: four rules, the first that matches decides, and equally many packets for each.
///
///     0  ipv4_dst 10.1.0.1     l4_dst_port 22  drop          mask A: ipv4_dst /32, l4_dst_port
///     1  ipv4_dst 10.1.0.0/16                  forward p1    mask B: ipv4_dst /16
///     2  ipv4_dst 10.2.0.1     l4_dst_port 80  forward p2    mask A
///     3  ipv4_dst 10.3.0.0/16                  forward p3    mask B
///
/// In the order of the rules each is a matcher of its own: A B A B. Packets of rules 0 to 3 try 1,
/// 2, 3 and 4 matchers, 2.5 on the mean. No packet matches rules 1 and 2, so rule 2 may join rule 0
/// in the first matcher, and rule 3 may join rule 1. Rule 0 must stay ahead of rule 1, whatever the
/// traffic: packets to 10.1.0.1, port 22, match both and must be dropped. The layout that comes
/// out:
///
///     matcher A: rules 0 and 2        tried by packets of rules 0 to 3: 1, 2, 1, 2
///     matcher B: rules 1 and 3        mean: 1.5
///
/// Tables of a pipeline, of which rules jump to further ones, may be joined (optimizer/src/joined/join.h): a
/// rule then does at once what its packets meet in several tables. Each table keeps its id, and does in the
/// end to whatever comes to it what it did, so packets may come to any of them. Actions that the input names
/// only as text may do anything to a packet; behind them it is not followed.
///
/// What is not promised: the least cost there is (the problem is NP-hard).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"
#include "greynic/core/layout_limits.h"
#include "greynic/core/result.h"
#include "greynic/model/model.h"

namespace greynic::optimizer {

/// Predicts the device where packets try so many matchers. Any engine fits.
using CostModel = std::function<Result<model::Prediction>(const model::MaskShares& tried)>;

/// A fitted model as a cost: matchers tried are the masks of `hop`, all other factors are those of `at`. The model must
/// outlive the result.
[[nodiscard]] CostModel mask_cost(const model::Model& model, Configuration at, Hop hop);

struct OptimizeOptions {
  std::uint64_t seed = 1;     ///< of the order search; the same seed gives the same layout
  bool single_table = false;  ///< no jumps: one chain of matchers for each input table
  bool join_tables = true;    ///< of a pipeline, where that saves matchers
  bool quick = false;         ///< no step of the search is tried otherwise
  double max_growth = 1.5;    ///< rules in the layout, jumps included, at most this times the input
  LayoutLimits limits;        ///< of the device that the layout is for; all kept, or no layout
  CostModel cost;             ///< empty: nothing is predicted
};

/// What a layout costs under the traffic.
struct LayoutCost {
  std::size_t tables = 0;
  std::size_t matchers = 0;             ///< in all tables together
  std::size_t rules = 0;                ///< jumps included
  double matchers_tried = 0.0;          ///< mean over the packets, weighted
  std::size_t matchers_tried_p99 = 0;   ///< 99 % of the packets, weighted, try at most so many
  std::size_t most_matchers_tried = 0;  ///< of any packet of the traffic
  double jumps = 0.0;                   ///< mean number of jumps that a packet takes
  /// (matchers tried, share of the packets that try so many), fewest first; their mean is above.
  model::MaskShares shares_by_tried;
  std::optional<model::Prediction> prediction;
};

/// What the proofs looked at; there is no OptimizedLayout without them. A table of the input is
/// proven by one of the two.
struct Proof {
  std::size_t tables = 0;     ///< layout tables proven, each under the packets that can reach it
  std::size_t pairs = 0;      ///< pairs of rules that were compared
  std::uint64_t regions = 0;  ///< regions of packets that the verifier halved besides
};

/// What no single chain for each input table can go below, if each matcher keeps the mask of its
/// rules. Cuts can, and do.
struct ChainBound {
  /// Distinct masks of the rules that decide something. Where a single chain was looked for, also
  /// those that must be split: as long as rules that overlap and do different things keep their order.
  std::size_t matchers = 0;
  double matchers_tried = 0.0;  ///< mean over the packets, if no rule had to stay before another
};

struct OptimizedLayout {
  Layout layout;
  LayoutCost before;  ///< of layout_in_rule_order()
  LayoutCost after;
  Proof proof;
  ChainBound bound;
  double seconds = 0.0;            ///< that search and proof took on this machine
  std::size_t rules_given = 0;     ///< of the input
  std::size_t rules_dropped = 0;   ///< input rules that decide nothing that another does not
  std::vector<std::string> notes;  ///< for people: what was done, and what could not be
};

/// Errors: kBadInput for no rules or weights that are not positive; kTooBig where no layout that was
/// found keeps to the limits; those of the cost model.
/// An empty traffic stands for equal weight on every rule.
[[nodiscard]] Result<OptimizedLayout> optimize(const RuleSet& rules, const Traffic& traffic,
                                               const OptimizeOptions& options = {});

/// The layout to improve on: rules in order of priority, one matcher for each change of mask. Rules
/// of one priority that do not overlap share matchers by mask. Core's flat_layout() never lets two
/// priorities share a matcher; this one does where they follow each other with the same mask.
[[nodiscard]] Layout layout_in_rule_order(const RuleSet& rules);

/// Mean and largest number of matchers tried, as core's expected_matchers_tried counts them, in
/// time that suits 100,000 rules and as many packets; no prediction.
[[nodiscard]] LayoutCost cost_of(const Layout& layout, const Traffic& traffic);

}  // namespace greynic::optimizer
