#pragma once

/// Covering arrays: few rows in which every combination of any two (three, ... six) settings
/// occurs. A fault that two settings cause together is then met by some row.
///
/// The input is a Space: parameters with levels, and clauses that every row must satisfy.
/// Campaigns, PICT, CASA, CNF and topologies all compile to one (model_cover.h); nothing here knows
/// what a level means. An example with 18 combinations, of which the clause leaves 14:
///
///     transport RC UC UD, operation SEND WRITE READ, message_bytes 64 65536
///     not UD, or SEND                          a datagram is sent, never written or read
///
///     RC SEND 64      UC SEND  65536   UD SEND 64
///     RC WRITE 65536  UC WRITE 64      UD SEND 65536
///     RC READ 64      UC READ  65536
///
/// There are 21 pairs of levels. UD+WRITE and UD+READ are infeasible; the 8 rows hold the other 19.
/// Fewer cannot do: RC and UC need three rows each for their operations, UD two for its sizes.
///
/// How rows are made: each starts from a pair that no row has yet, and takes the level that newly
/// covers most, again and again, while a propagator sees to it that the row can still be finished.
/// A local search then takes rows away, one at a time, and closes the gaps by changing single cells
/// of the rest. docs/testgen/engine.md says more.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/language/cover_model.h"

namespace greynic::testgen {

using language::Clause;
using language::Literal;
using language::SubModel;
using language::Tuple;

struct Parameter {
  std::uint16_t level_count = 1;
  /// False for helpers that constraints introduced: they take part in clauses, never in coverage.
  bool covered = true;
  /// Level that means "does not exist here" (a conditional factor); tuples with it need no
  /// covering. Negative: there is none.
  int absent_level = -1;
  /// Relative preference for each level where several are as good; empty: none.
  std::vector<double> level_weights;
  /// Cost that each level adds to a row; empty: none.
  std::vector<double> level_costs;
};

/// One level for each parameter, helpers included.
using Row = std::vector<std::uint16_t>;

struct Space {
  std::vector<Parameter> parameters;
  std::vector<Clause> clauses;
  std::vector<SubModel> groups;
  std::vector<Row> seeds;    ///< whole rows that must be kept; each must be valid
  std::vector<Row> already;  ///< rows that were run before: their tuples count as covered
};

/// What a call is about to take, known before the first row. Rows and time come from the levels
/// alone; they were within a factor of three of what came out for nine models in ten. Constraints
/// that ask for many more rows than the levels do are not foreseen.
struct CoverEstimate {
  std::size_t parameters = 0;     ///< covered ones
  int strength = 0;               ///< the highest
  double tuples = 0.0;            ///< feasible or not
  double bytes = 0.0;             ///< of tables
  double rows = 0.0;              ///< of the array
  double steps = 0.0;             ///< without a deadline, in the measure of Cover::steps
  double seconds = 0.0;           ///< without a deadline, on the threads that were asked for
  double deadline_seconds = 0.0;  ///< as asked for; 0: none
};

/// "40 parameters, at most 2.46e+08 tuples of 6, 385 MB of tables; about 630 rows, in about 2 min
/// (40 s to 6 min)", for people.
[[nodiscard]] std::string describe(const CoverEstimate& estimate);

struct CoverOptions {
  int strength = 2;  ///< 1 to 6
  std::uint64_t seed = 1;
  double deadline_seconds = 0.0;  ///< 0: while the search gets on well; else until then
  double patience =
      1.0;  ///< without a deadline: times the usual work that brought no smaller array
  std::function<double()> clock;  ///< seconds, from any start, any thread; empty: the steady clock
  int threads = 1;
  /// Tables beyond are refused with the size needed; 0: 8 GiB, or what the machine has left.
  std::uint64_t memory_bytes = 0;
  bool list_infeasible = false;         ///< fill Cover::infeasible
  std::size_t most_listed = 1'000'000;  ///< of them
  bool report_lower_bound = false;      ///< spend time on a bound better than the trivial one
  std::function<void(const CoverEstimate&)> announce;                 ///< may be empty
  std::function<void(double share_done, std::size_t rows)> progress;  ///< may be empty
};

struct Cover {
  std::vector<Row> rows;  ///< every one valid; seeds first
  std::uint64_t tuples_covered = 0;
  std::uint64_t tuples_infeasible = 0;
  std::vector<Tuple> infeasible;  ///< as many as were asked for, and as could be listed in the time
  std::size_t lower_bound = 0;    ///< no array has fewer rows
  std::string lower_bound_reason;
  bool full = false;  ///< every feasible tuple is covered; false when the deadline came before that
  bool deadline_reached = false;
  double steps = 0.0;  ///< counted, each about a nanosecond of one thread
  double seconds = 0.0;
};

/// Covers every feasible tuple with valid rows. Without a deadline the rows depend on the space,
/// the strength and the seed alone, not on the number of threads. A deadline that comes before
/// every tuple is covered ends the call with the rows made so far (Cover::full is false); one that
/// comes before the first row, or would while tables are laid out, is kTooBig with the size.
/// kInfeasible when no row is valid (names a small set of clauses), kTooBig with the estimated
/// size, kBadInput for a seed that breaks a constraint or a level that is not there.
[[nodiscard]] Result<Cover> cover(const Space& space, const CoverOptions& options);

}  // namespace greynic::testgen
