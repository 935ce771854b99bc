#include "greynic/language/expression.h"

#include <algorithm>
#include <cmath>

#include "greynic/core/check.h"

namespace greynic::language {

namespace {

Expr node(ExprKind kind, std::vector<Expr> args) {
  Expr expr;
  expr.kind = kind;
  expr.args = std::move(args);
  return expr;
}

void collect_parameters(const Expr& expression, std::vector<std::uint32_t>& out) {
  if (expression.kind == ExprKind::kLevelIn || expression.kind == ExprKind::kExists ||
      expression.kind == ExprKind::kNumeric) {
    out.push_back(expression.parameter);
  }
  for (const Expr& arg : expression.args) collect_parameters(arg, out);
}

Truth opposite_truth(Truth truth) { return static_cast<Truth>(-static_cast<int>(truth)); }

/// Arithmetic with absent parameters and divisions by zero: empty when there is no value.
struct Arithmetic {
  const std::function<int(std::uint32_t)>& level_of;
  const std::function<double(std::uint32_t, int)>& number_of;
  bool known = true;

  double value(const Expr& expression) {
    switch (expression.kind) {
      case ExprKind::kNumber:
        return expression.number;
      case ExprKind::kNumeric: {
        const int level = level_of(expression.parameter);
        if (level >= 0) return number_of(expression.parameter, level);
        known = false;
        return 0.0;
      }
      case ExprKind::kAdd: {
        double sum = 0.0;
        for (const Expr& arg : expression.args) sum += value(arg);
        return sum;
      }
      case ExprKind::kMultiply: {
        double product = 1.0;
        for (const Expr& arg : expression.args) product *= value(arg);
        return product;
      }
      case ExprKind::kDivide: {
        const double dividend = value(expression.args[0]);
        const double divisor = value(expression.args[1]);
        if (divisor != 0.0) return dividend / divisor;
        known = false;
        return 0.0;
      }
      default:
        GREYNIC_CHECK(false && "arithmetic expected");
    }
    return 0.0;
  }
};

}  // namespace

Expr Expr::constant(bool value) { return node(value ? ExprKind::kTrue : ExprKind::kFalse, {}); }

Expr Expr::level_in(std::uint32_t parameter, std::vector<std::uint16_t> levels) {
  Expr expr;
  expr.kind = ExprKind::kLevelIn;
  expr.parameter = parameter;
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  expr.levels = std::move(levels);
  return expr;
}

Expr Expr::exists(std::uint32_t parameter) {
  Expr expr;
  expr.kind = ExprKind::kExists;
  expr.parameter = parameter;
  return expr;
}

Expr Expr::compare(CompareOp op, Expr left, Expr right) {
  Expr expr = node(ExprKind::kCompare, {std::move(left), std::move(right)});
  expr.op = op;
  return expr;
}

Expr Expr::negation(Expr arg) { return node(ExprKind::kNot, {std::move(arg)}); }
Expr Expr::all_of(std::vector<Expr> args) { return node(ExprKind::kAnd, std::move(args)); }
Expr Expr::any_of(std::vector<Expr> args) { return node(ExprKind::kOr, std::move(args)); }

Expr Expr::implies(Expr condition, Expr consequence) {
  return node(ExprKind::kImplies, {std::move(condition), std::move(consequence)});
}

Expr Expr::iff(Expr left, Expr right) {
  return node(ExprKind::kIff, {std::move(left), std::move(right)});
}

Expr Expr::value(double number) {
  Expr expr;
  expr.kind = ExprKind::kNumber;
  expr.number = number;
  return expr;
}

Expr Expr::numeric(std::uint32_t parameter) {
  Expr expr;
  expr.kind = ExprKind::kNumeric;
  expr.parameter = parameter;
  return expr;
}

std::vector<std::uint32_t> parameters_of(const Expr& expression) {
  std::vector<std::uint32_t> out;
  collect_parameters(expression, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool holds(CompareOp op, double left, double right) {
  // Sums like 0.1 + 0.2 must equal 0.3, in whatever order they were added up.
  const double slack = 1e-9 * std::max({1.0, std::abs(left), std::abs(right)});
  const bool equal = left == right || std::abs(left - right) <= slack;
  switch (op) {
    case CompareOp::kEqual:
      return equal;
    case CompareOp::kNotEqual:
      return !equal;
    case CompareOp::kLess:
      return !equal && left < right;
    case CompareOp::kLessEqual:
      return equal || left < right;
    case CompareOp::kGreater:
      return !equal && left > right;
    case CompareOp::kGreaterEqual:
      return equal || left > right;
  }
  return false;
}

CompareOp opposite(CompareOp op) {
  switch (op) {
    case CompareOp::kEqual:
      return CompareOp::kNotEqual;
    case CompareOp::kNotEqual:
      return CompareOp::kEqual;
    case CompareOp::kLess:
      return CompareOp::kGreaterEqual;
    case CompareOp::kLessEqual:
      return CompareOp::kGreater;
    case CompareOp::kGreater:
      return CompareOp::kLessEqual;
    case CompareOp::kGreaterEqual:
      return CompareOp::kLess;
  }
  return op;
}

Truth evaluate(const Expr& expression, const std::function<int(std::uint32_t)>& level_of,
               const std::function<double(std::uint32_t, int)>& number_of) {
  const auto arg = [&](std::size_t index) {
    return evaluate(expression.args[index], level_of, number_of);
  };
  switch (expression.kind) {
    case ExprKind::kTrue:
      return Truth::kTrue;
    case ExprKind::kFalse:
      return Truth::kFalse;
    case ExprKind::kLevelIn: {
      const int level = level_of(expression.parameter);
      if (level < 0) return Truth::kUnknown;
      return std::binary_search(expression.levels.begin(), expression.levels.end(), level)
                 ? Truth::kTrue
                 : Truth::kFalse;
    }
    case ExprKind::kExists:
      return level_of(expression.parameter) >= 0 ? Truth::kTrue : Truth::kFalse;
    case ExprKind::kCompare: {
      Arithmetic arithmetic{level_of, number_of};
      const double left = arithmetic.value(expression.args[0]);
      const double right = arithmetic.value(expression.args[1]);
      if (!arithmetic.known) return Truth::kUnknown;
      return holds(expression.op, left, right) ? Truth::kTrue : Truth::kFalse;
    }
    case ExprKind::kNot:
      return opposite_truth(arg(0));
    case ExprKind::kAnd: {
      Truth least = Truth::kTrue;
      for (std::size_t i = 0; i < expression.args.size(); ++i) least = std::min(least, arg(i));
      return least;
    }
    case ExprKind::kOr: {
      Truth most = Truth::kFalse;
      for (std::size_t i = 0; i < expression.args.size(); ++i) most = std::max(most, arg(i));
      return most;
    }
    case ExprKind::kImplies:
      return std::max(opposite_truth(arg(0)), arg(1));
    case ExprKind::kIff: {
      const Truth left = arg(0);
      const Truth right = arg(1);
      if (left == Truth::kUnknown || right == Truth::kUnknown) return Truth::kUnknown;
      return left == right ? Truth::kTrue : Truth::kFalse;
    }
    default:
      GREYNIC_CHECK(false && "a Boolean expression expected");
  }
  return Truth::kUnknown;
}

}  // namespace greynic::language
