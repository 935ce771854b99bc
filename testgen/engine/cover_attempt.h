#pragma once

/// One way to a full array: rows by greedy choice, then local search. Attempts differ by seed and
/// by what they start from, and share nothing that they write, so they run side by side.

#include "engine/cover_task.h"
#include "engine/open_tuples.h"
#include "engine/seeded_random.h"
#include "validity/validity.h"

namespace greynic::testgen {

class CoverAttempt {
 public:
  /// `start_algebraic`: parameters that no constraint touches start from an algebraic array;
  /// `reports`: this one calls CoverOptions::progress; `frugal`: levels that cost more than others
  /// of their parameter join a row only for a tuple that the row is built on.
  CoverAttempt(const CoverTask& task, std::uint64_t seed, bool start_algebraic, bool reports,
               bool frugal);

  /// Whether there is an algebraic array to start from.
  [[nodiscard]] static bool has_algebraic_start(const CoverTask& task, const Validity& validity);

  /// Whether the deadline leaves time for the tables; if not run() must not be called.
  [[nodiscard]] bool laid_out() const { return laid_out_; }
  [[nodiscard]] double seconds_to_lay_out() const { return seconds_to_lay_out_; }

  /// Covers everything, or as much as the deadline lets it; then improves.
  void run(SharedBest& shared);

  [[nodiscard]] const std::vector<ValueRow>& rows() const { return rows_; }  ///< seeds first
  [[nodiscard]] bool full() const { return full_; }
  /// Tuples that were open before any row: what propagation does not refute.
  [[nodiscard]] std::uint64_t tuples() const { return tuples_; }
  [[nodiscard]] std::uint64_t covered() const { return covered_; }
  /// Tuples found to be infeasible beyond incompatible pairs, ascending values.
  [[nodiscard]] const std::vector<std::vector<Value>>& infeasible() const { return infeasible_; }
  [[nodiscard]] const LowerBound& bound() const { return bound_; }
  /// Taken so far, in the measure of Cover::steps.
  [[nodiscard]] double steps() const;

 private:
  void cover(const ValueRow& row);
  void start_from_algebra();
  void fill();
  [[nodiscard]] double steps_of_a_search() const;
  void improve(SharedBest& shared);
  void save_costs();
  [[nodiscard]] std::uint64_t patience() const;
  void find_bound();
  void settle();
  void drop_repeated();
  void report(double share, std::size_t rows) const;

  const CoverTask& task_;
  Validity validity_;
  SeededRandom random_;
  bool start_algebraic_;
  bool reports_;
  bool frugal_;
  std::vector<OpenTuples> open_;
  bool laid_out_ = true;
  std::size_t built_ = 0;  ///< rows, before any was taken away
  double search_work_ = 0.0;
  double seconds_to_lay_out_ = 0.0;  ///< since the start, as far as could be told
  std::uint64_t tuples_ = 0;
  std::vector<ValueRow> rows_;
  std::vector<std::vector<Value>> infeasible_;
  std::uint64_t covered_ = 0;
  bool full_ = false;
  LowerBound bound_;
};

}  // namespace greynic::testgen
