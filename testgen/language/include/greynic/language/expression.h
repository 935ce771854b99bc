#pragma once

/// Constraint expressions, in the one form to which every input language is read: Boolean structure
/// over two kinds of atoms, "parameter has one of these levels" and comparisons of sums, products
/// and quotients of numeric parameters. Strings, wildcards, aliases and case are gone by then: the
/// reader that knows them turned them into sets of levels.
///
/// A conditional parameter may be absent. An atom that reads an absent parameter is neither true
/// nor false; a constraint is broken only when it is false (Kleene's three-valued logic).

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::language {

enum class ExprKind : std::uint8_t {
  kTrue,
  kFalse,
  kLevelIn,  ///< parameter has one of `levels` (ascending)
  kExists,   ///< parameter is there; true or false, never unknown
  kCompare,  ///< args[0] op args[1], both arithmetic
  kNot,
  kAnd,
  kOr,
  kImplies,
  kIff,  ///< kAnd, kOr: any number of args
  kNumber,
  kNumeric,  ///< arithmetic: a constant, the value of a parameter
  kAdd,
  kMultiply,
  kDivide,  ///< kAdd, kMultiply: any number of args
};

enum class CompareOp : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual
};

struct Expr {
  ExprKind kind = ExprKind::kTrue;
  CompareOp op = CompareOp::kEqual;
  std::uint32_t parameter = 0;
  double number = 0.0;
  std::vector<std::uint16_t> levels;
  std::vector<Expr> args;

  static Expr constant(bool value);
  static Expr level_in(std::uint32_t parameter, std::vector<std::uint16_t> levels);
  static Expr exists(std::uint32_t parameter);
  static Expr compare(CompareOp op, Expr left, Expr right);
  static Expr negation(Expr arg);
  static Expr all_of(std::vector<Expr> args);
  static Expr any_of(std::vector<Expr> args);
  static Expr implies(Expr condition, Expr consequence);
  static Expr iff(Expr left, Expr right);
  static Expr value(double number);
  static Expr numeric(std::uint32_t parameter);
};

/// Ascending, each once.
[[nodiscard]] std::vector<std::uint32_t> parameters_of(const Expr& expression);

[[nodiscard]] bool holds(CompareOp op, double left, double right);
[[nodiscard]] CompareOp opposite(CompareOp op);

/// Truth of an expression: false, unknown, true.
enum class Truth : std::int8_t { kFalse = -1, kUnknown = 0, kTrue = 1 };

/// Plain evaluation by recursion. `level_of(p)` is the level of parameter p or -1 when it is
/// absent; `number_of(p, level)` its value. Division by zero makes its atom unknown.
[[nodiscard]] Truth evaluate(const Expr& expression,
                             const std::function<int(std::uint32_t)>& level_of,
                             const std::function<double(std::uint32_t, int)>& number_of);

}  // namespace greynic::language
