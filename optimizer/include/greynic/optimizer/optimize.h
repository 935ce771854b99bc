#pragma once

/// Finds a layout of a rule set that does the same to every packet and tries fewer matchers.
///
/// How: rules that nothing can hit are left out; rules of equal mask share one matcher, across
/// priorities, as far as precedence allows (a rule may move ahead of another only when no packet
/// matches both or both do the same); matchers are ordered by the traffic they decide; and, unless
/// single_table is set, a table is cut where that pays: one coarse matcher sends each packet by a
/// jump to a small table of the rules that it can still match. The number of rules grows by at most
/// max_growth. The result is proven equivalent by an exact overlap scan over the finished layout
/// (optimizer/src/proof.h); a layout that is not proven is never returned.
///
/// What it does not promise: the least cost there is (the problem is NP-hard), and nothing about
/// packets whose headers an action changes between two input tables: each input table is laid out
/// and proven on its own, which is sufficient for the whole pipeline.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/model/model.h"

namespace greynic::optimizer {

/// Predicts the device at a mean number of matchers tried by a packet. Any engine fits.
using CostModel = std::function<Result<model::Prediction>(double matchers_tried)>;

/// A fitted model as a cost: the mask factor of `hop` is set to the number of matchers tried, all
/// other factors are those of `at`. The model must outlive the result.
[[nodiscard]] CostModel mask_cost(const model::Model& model, Configuration at, Hop hop);

struct OptimizeOptions {
  std::uint64_t seed = 1;     ///< of the order search; the same seed gives the same layout
  bool single_table = false;  ///< no jumps: one chain of matchers for each input table
  double max_growth = 1.5;    ///< rules in the layout, jumps included, at most this times the input
  std::uint32_t last_table = 0xfffffffe;  ///< no table beyond is added: switches have few
  CostModel cost;                         ///< empty: nothing is predicted
};

/// What a layout costs under the traffic.
struct LayoutCost {
  std::size_t tables = 0;
  std::size_t matchers = 0;             ///< in all tables together
  std::size_t rules = 0;                ///< jumps included
  double matchers_tried = 0.0;          ///< mean over the packets, weighted
  std::size_t most_matchers_tried = 0;  ///< of any packet of the traffic
  std::optional<model::Prediction> prediction;
};

/// What the overlap scan looked at; there is no OptimizedLayout without it.
struct Proof {
  std::size_t tables = 0;  ///< layout tables proven, each under the packets that can reach it
  std::size_t pairs = 0;   ///< pairs of input rule and layout rule compared
};

struct OptimizedLayout {
  Layout layout;
  LayoutCost before;  ///< of plain_layout
  LayoutCost after;
  Proof proof;
  std::size_t rules_dropped = 0;   ///< input rules that decide nothing that another does not
  std::vector<std::string> notes;  ///< for people: what was done, and what could not be
};

/// Errors: kBadInput for no rules or weights that are not positive; those of the cost model.
/// An empty traffic stands for equal weight on every rule.
[[nodiscard]] Result<OptimizedLayout> optimize(const RuleSet& rules, const Traffic& traffic,
                                               const OptimizeOptions& options = {});

/// What a driver does that thinks about nothing: rules in order of priority, a new matcher wherever
/// the mask changes. Where rules of one priority do not overlap, they share matchers by mask.
[[nodiscard]] Layout plain_layout(const RuleSet& rules);

/// Mean and largest number of matchers tried, as core's expected_matchers_tried counts them, in
/// time that suits 100,000 rules and as many packets; no prediction.
[[nodiscard]] LayoutCost cost_of(const Layout& layout, const Traffic& traffic);

}  // namespace greynic::optimizer
