#pragma once

/// Which levels can still join a partial row. A propagator over parameters with many levels: each
/// parameter has exactly one level (kept natively, without clauses), constraints are clauses with
/// two watched literals, and every dead end leaves a learned clause, so the same dead end is not
/// met again. What that search does not settle within its conflict budget is put to CaDiCaL.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_values.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

class SpaceSolver;

class Validity {
 public:
  explicit Validity(const Space& space, const ValueIndex& index);
  ~Validity();
  Validity(const Validity&) = delete;
  Validity& operator=(const Validity&) = delete;

  /// False: no row at all is valid.
  [[nodiscard]] bool possible() const { return possible_; }

  /// Is there a valid row with all of these values? Leaves the propagator empty.
  [[nodiscard]] bool feasible(std::span<const Value> values);

  /// The row that the last feasible() found, as one value a parameter; parameters without a
  /// constraint keep what they had in the witness before.
  [[nodiscard]] const std::vector<Value>& witness() const { return witness_; }

  /// Never again a row with all of these; they must be known to be infeasible together.
  void forbid(std::span<const Value> values);

  // -- building a row, value by value ----------------------------------------------------------

  /// Forgets all choices.
  void restart();
  /// Puts the values in; false if propagation refuses them. What was put in is never taken back.
  [[nodiscard]] bool assume(std::span<const Value> values);
  /// Chooses a value that is still allowed. True: the row stands. False: it ran into a dead end,
  /// learned why, and took back as many choices as needed (changes() says that all may have
  /// changed).
  [[nodiscard]] bool choose(Value v);
  /// False after assume() or choose(): what was assumed has no valid row.
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool allowed(Value v) const { return truth_[literal_[v]] >= 0; }
  [[nodiscard]] bool chosen(Value v) const { return truth_[literal_[v]] > 0; }
  /// Values in the row so far, in the order they came; grows with assume() and choose().
  [[nodiscard]] const std::vector<Value>& row() const { return row_; }
  /// Conflicts met since restart().
  [[nodiscard]] std::uint64_t conflicts() const { return conflicts_; }
  /// Completes the row as it stands by whatever is valid; false when there is no way.
  /// `wish`: a value for each parameter that is preferred where allowed; may be null.
  [[nodiscard]] bool complete(const Value* wish);

  /// True when no clause speaks of the parameter.
  [[nodiscard]] bool free(std::uint32_t parameter) const { return !constrained_[parameter]; }

  /// One value a parameter: does it satisfy every clause of the space?
  [[nodiscard]] bool satisfied(std::span<const Value> row) const;

  /// Indices of clauses that together leave no row, small though not always smallest.
  [[nodiscard]] static std::vector<std::size_t> unsatisfiable_core(const Space& space,
                                                                   const ValueIndex& index);

 private:
  using Lit = std::uint32_t;  ///< 2 * variable + (1 when negated)
  enum class Why : std::uint8_t { kChoice, kBinary, kClause, kOneLevelOnly, kLastLevel };
  struct Reason {
    Why why = Why::kChoice;
    std::uint32_t from = 0;  ///< other literal, clause, or parameter
  };
  struct Watch {
    std::uint32_t clause;
    Lit blocker;
  };

  [[nodiscard]] Lit literal(const Literal& l) const;
  bool add_clause(std::vector<Lit> clause, bool learned);
  void attach(std::uint32_t clause);
  void enqueue(Lit lit, Reason reason);
  bool propagate();
  void learn(std::vector<Lit>& clause, std::uint32_t& level);
  void reason_literals(Lit lit, std::vector<Lit>& out) const;
  void undo_to(std::uint32_t level);
  bool recover();
  bool search(std::uint64_t budget, const Value* wish);
  bool ask_solver();
  void shrink_learned();
  [[nodiscard]] std::uint32_t level() const { return static_cast<std::uint32_t>(limits_.size()); }

  const ValueIndex& index_;
  const Space& space_;
  std::vector<Lit> literal_;                 ///< of each value
  std::vector<Value> value_of_;              ///< of each literal; kNoValue when it names none
  std::vector<std::uint32_t> parameter_of_;  ///< of each variable
  std::vector<char> constrained_;
  std::vector<std::uint32_t> decide_order_;  ///< constrained parameters

  std::vector<std::int8_t> truth_;  ///< of each literal: 1, -1, 0 open
  std::vector<Reason> reason_;      ///< of each variable
  std::vector<std::uint32_t> level_of_;
  std::vector<std::uint32_t> open_levels_;  ///< levels not ruled out, of each parameter
  std::vector<Lit> trail_;
  std::vector<std::uint32_t> limits_;      ///< trail size at the start of each level
  std::vector<std::uint32_t> row_limits_;  ///< the same for row_
  std::size_t done_ = 0;                   ///< trail literals that were propagated
  std::vector<Value> row_;
  std::vector<Value> assumed_;
  std::vector<Lit> units_;  ///< learned facts, put in at the next restart
  std::uint32_t base_ = 0;  ///< levels below are assumptions
  bool alive_ = true;
  bool possible_ = true;
  std::uint64_t conflicts_ = 0;

  std::vector<Lit> arena_;                   ///< size, then literals, of each long clause
  std::vector<std::vector<Lit>> implied_;    ///< by each literal being true, through binary clauses
  std::vector<std::vector<Watch>> watches_;  ///< of each literal: visited when it becomes false
  std::size_t original_arena_ = 0;           ///< where learned clauses start
  std::size_t learned_ = 0;
  std::vector<Lit> conflict_;  ///< literals, all false
  std::vector<char> seen_;
  std::vector<Value> witness_;
  std::unique_ptr<SpaceSolver> solver_;
};

}  // namespace greynic::testgen
