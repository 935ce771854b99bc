#pragma once

/// Grows a plan from the units of one input table, top down.
///
/// A node is what is left to decide in one region of packets: units, and a table of the plan into
/// which its matchers go, with an exit for what they do not decide. Three things can be done:
///   - a chain: the units as matchers, one for each mask. The end of a branch;
///   - a cut: one matcher on some bits sends each of their values to a table of its own. Units that
///     look at all of the bits go there, the others to a rest, which is the exit of all parts. A
///     unit may go before the rest only when all that must come before it goes along: few such are
///     copied; a unit with too many stays in the rest;
///   - a guard: ports below 1024, say, jump away; behind it a unit for 1024:65535 looks at no port.
/// What looks cheapest is done; parts are priced as the trees that they become, by a rule of thumb.

#include <limits>
#include <memory>
#include <optional>

#include "src/chained/node_chain.h"
#include "src/chained/plan.h"

namespace greynic::optimizer::chained {

struct GrowOptions {
  double entry_price = 0.0;     ///< of one entry, in share of packets x matchers tried
  std::size_t most_tables = 0;  ///< that may be added
  std::size_t most_rules = 0;   ///< the search gives up beyond
  std::size_t most_jumps = 0;   ///< that follow one another
  /// Matchers tried on the mean with entries priced in, beyond which the search gives up.
  double most_cost = std::numeric_limits<double>::infinity();
  bool filters = true;          ///< may be put in
  bool without_too = false;     ///< where filters are put in, the plan without is wanted, too
  bool chains_as_made = false;  ///< chains are priced with what waits in them
  /// Decisions on nodes of such a weight of packets are kept, to be made otherwise.
  double kept_from = std::numeric_limits<double>::infinity();
};

/// The end of a table, whose chain was made quickly.
struct QuickChain {
  std::uint32_t table;
  std::size_t begin;  ///< of its matchers in the table
  std::shared_ptr<const WrittenOut> rows;
};

struct GrownPlan {
  Plan plan;  ///< empty when it would have too many rules
  std::vector<QuickChain> quick;
};

struct Grown {
  GrownPlan plan;
  bool filtered = false;  ///< a filter was put in; without, options.filters changed nothing
  GrownPlan without;      ///< as plan, but without filters: only what they change is grown again
  std::size_t work = 0;   ///< units of all nodes looked at, and what chains take, in as much
};

/// Makes the chains again with all care; true where there were some.
bool make_chains_again(GrownPlan& grown);

/// `conflicts`: of the units' rows. `decider`: for each packet its unit, kNoRow when none; packets
/// are packed as the problem's rows.
[[nodiscard]] Grown grow_plan(Units& units, const Conflicts& conflicts, const Rows& packets,
                              const std::vector<double>& packet_weight,
                              const std::vector<std::uint32_t>& decider,
                              const GrowOptions& options);

}  // namespace greynic::optimizer::chained
