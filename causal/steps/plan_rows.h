#pragma once

/// Which row of a covering plan to test next, and which need no test. A row is for choices of as many levels as
/// the plan's strength says; a choice was told where it was in a clear configuration, whatever that was tested
/// for, for a cause of so many levels is in no clear one.
///
/// A wall tells nothing of what else is in it. So a row that a known cause explains is healed of it: one of its
/// terms takes another level, and the choices that do not hold the cause are asked there. Before a row is
/// tested, levels that are there only for choices which were told, or which other rows have, go where they tell
/// more.
///
/// Example, pairs of four settings, when a1 b1 is a known cause:
///
///     row of the plan    a1 b1 c1 d0      explained: c1 and d0 with a1, and with b1, would not be told
///     asked              a1 b0 c1 d0      and b1 c1 and b1 d0 with some other row

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "greynic/statistics/random.h"
#include "src/session.h"

namespace greynic::causal {

class PlanRows {
 public:
  using Holds = std::function<bool(const Configuration&)>;

  PlanRows(const Campaign& campaign, std::vector<Configuration> rows);
  /// Nothing: all that the plan is for was told, or holds what is explained. Rows of other kinds of plan, and
  /// of very large ones, come as they are, and those that the campaign asks for by name come first.
  [[nodiscard]] std::optional<Configuration> next(const Session& session, const Holds& is_explained,
                                                  const Holds& is_allowed);
  /// This row was tested, and what it holds is not asked again, though it may not be clear.
  void had(const Configuration& row);

 private:
  using Levels = std::vector<std::size_t>;
  struct Choice {
    std::vector<std::size_t> factors;
    std::vector<std::size_t> strides;
    std::size_t first = 0;  ///< place of its lowest levels
  };
  void add_choices(const std::vector<std::size_t>& of, std::size_t strength);
  [[nodiscard]] Levels levels_of(const Configuration& row) const;
  [[nodiscard]] Configuration row_of(const Levels& levels) const;
  [[nodiscard]] std::size_t place_of(const Choice& choice, const Levels& levels) const;
  [[nodiscard]] std::size_t open_in(const Levels& levels) const;
  void tell(const Levels& levels);
  void look_at_tests(const Session& session);
  void count(std::size_t place, bool more);
  void count(const Levels& levels, bool more);
  void move(const Levels& from, const Levels& to);
  [[nodiscard]] const Choice& choice_at(std::size_t place) const;
  void put(std::size_t place, Levels& levels) const;
  [[nodiscard]] bool may_ask(const Levels& levels, const Holds& is_explained,
                             const Holds& is_allowed);
  /// One row takes one level.
  struct Step {
    std::size_t row = 0, factor = 0, level = 0;
    std::ptrdiff_t lost = 0;  ///< open choices that no row has then, less those that get one
  };
  struct Barred;
  [[nodiscard]] std::ptrdiff_t lost_by(const Levels& row, std::size_t factor,
                                       std::size_t level) const;
  [[nodiscard]] std::optional<Step> best_step(std::size_t place, const Barred& barred,
                                              const Holds& is_explained, const Holds& is_allowed);
  void force(std::size_t place, const Holds& is_explained, const Holds& is_allowed);
  [[nodiscard]] bool settle(std::size_t moves, const Holds& is_explained, const Holds& is_allowed);
  [[nodiscard]] std::optional<Levels> row_with(std::size_t place, const Holds& is_explained,
                                               const Holds& is_allowed);
  void plan_rest(const Holds& is_explained, const Holds& is_allowed);
  [[nodiscard]] std::optional<Configuration> nearest();

  const Campaign& campaign_;
  std::vector<Configuration> rows_;
  std::size_t next_ = 0;  // of rows that come as they are
  bool covers_ = false;   // choices are kept
  bool moves_ = false;    // levels of rows may move
  std::size_t by_name_ = 0;
  std::vector<std::size_t> varied_;
  std::vector<Choice> choices_;
  std::vector<std::vector<std::size_t>> choices_with_;  ///< by factor
  std::vector<bool> open_;
  std::vector<Levels> plan_;  ///< its rows
  Levels baseline_;
  std::vector<Levels> asked_;  ///< rows that are left
  std::vector<std::uint32_t>
      rows_with_;                     ///< of each open choice of levels, how many of these have it
  std::vector<std::size_t> missing_;  ///< open ones that none has
  std::vector<std::size_t> where_;    ///< in the list of these
  std::map<Levels, bool> may_ask_;
  statistics::Random random_{1};
  std::size_t looks_ = 0;  // at choices, when rows were moved
  std::size_t most_looks_ = 0;
  std::size_t seen_ = 0;         // configurations that were asked about
  std::vector<bool> looked_at_;  // tests
};

}  // namespace greynic::causal
