#pragma once

/// From "this setting is a term" to what the term says: which levels of the campaign bring the
/// wall.
///
/// All other terms stay at the wall's levels, all other factors at the baseline's. Numbers are
/// searched on the campaign's own levels, from the wall's level towards the baseline's and away
/// from it; categories are tried one by one. Then each two thresholds are set together, and one
/// number is set high where the other is below its own: where one makes up for the other, they are
/// a sum.
///
///     levels 0 5 10 20 40 80, baseline 0, wall at 40; 10 to 40 bring the wall
///     towards the baseline   10 wall, 5 clear        away   80 clear
///     term                   between 10 and 40 (clear at 5 and 80)

#include <span>

#include "witness_search.h"

namespace greynic::causal {

class LevelSearch {
 public:
  /// `known`: causes that were named before. A level at which one of them holds is a wall by it and is not asked;
  /// they must outlive this.
  LevelSearch(Session& session, Settings& settings, std::span<const Cause> known = {});
  /// The cause with its levels; `cause.evidence` holds the tests that it rests on.
  [[nodiscard]] Result<Cause> levels_of(const FoundCause& found);

 private:
  struct Edge {
    std::size_t level = 0;  ///< the last level that is a wall, as an index into the numbers
    bool open = false;      ///< there is no level beyond, or all of them are walls
    double confidence = 1.0;
  };
  [[nodiscard]] std::optional<Id> with_level(const std::string& factor, const FactorValue& level);
  [[nodiscard]] Result<Edge> edge_towards(const std::string& factor,
                                          const std::vector<double>& numbers,
                                          const std::vector<std::size_t>& path, bool away);
  [[nodiscard]] Result<Condition> number_term(const std::string& factor, double home, double other);
  [[nodiscard]] Result<Condition> category_term(const std::string& factor, const FactorValue& home,
                                                const FactorValue& other);
  [[nodiscard]] Result<Condition> term_of(std::size_t setting, bool absent);
  [[nodiscard]] Result<void> check_sums(Cause& cause);
  [[nodiscard]] Result<bool> is_sum(const Condition& a, const Condition& b);
  [[nodiscard]] Result<bool> join_to_sum(Cause& cause, std::size_t a, std::size_t b);
  [[nodiscard]] std::vector<double> numbers_of(const std::string& factor, double home,
                                               double other) const;
  [[nodiscard]] double level_error() const;
  [[nodiscard]] const Cause* known_at(Id id) const;

  Session& session_;
  Settings& settings_;
  std::span<const Cause> known_;
  Configuration base_;  ///< the cause alone
  double confidence_ = 1.0;
};

}  // namespace greynic::causal
