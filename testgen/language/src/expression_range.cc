#include "greynic/language/expression_range.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "greynic/core/check.h"

namespace greynic::language {
namespace {

/// Beyond every value that counts. An infinite one would be equal to all others for `holds`, whose
/// slack grows with what it compares.
constexpr double kHuge = 1e300;

/// Values between two bounds, or none at all where something is absent or divided by zero.
struct Range {
  double low = 0.0;
  double high = 0.0;
  bool maybe_unknown = false;
  /// Of what is absent, or divided by zero, for certain.
  static Range none() { return {kHuge, -kHuge, true}; }
  [[nodiscard]] bool empty() const { return low > high; }
  [[nodiscard]] bool single() const { return low == high; }
};

/// Of `combine` at the corners, which bound sums, products and quotients.
template <typename Combine>
Range corners(const Range& a, const Range& b, Combine combine) {
  const std::array<double, 4> values = {combine(a.low, b.low), combine(a.low, b.high),
                                        combine(a.high, b.low), combine(a.high, b.high)};
  const bool unknown = a.maybe_unknown || b.maybe_unknown;
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) {
    return {-kHuge, kHuge, unknown};
  }
  return {std::max(-kHuge, *std::ranges::min_element(values)),
          std::min(kHuge, *std::ranges::max_element(values)), unknown};
}

class Ranges {
 public:
  Ranges(const LevelSets& levels_of, const std::function<double(std::uint32_t, int)>& number_of)
      : levels_of_(levels_of), number_of_(number_of) {}

  Truths truths(const Expr& expression) const {
    switch (expression.kind) {
      case ExprKind::kTrue:
        return {.true_too = true};
      case ExprKind::kFalse:
        return {.false_too = true};
      case ExprKind::kLevelIn:
      case ExprKind::kExists:
        return of_levels(expression);
      case ExprKind::kCompare:
        return compare(expression);
      case ExprKind::kNot:
        return opposite(truths(expression.args[0]));
      case ExprKind::kAnd:
        return least(expression.args);
      case ExprKind::kOr: {
        Truths none{.true_too = true};
        for (const Expr& arg : expression.args) none = both(none, opposite(truths(arg)));
        return opposite(none);
      }
      case ExprKind::kImplies:
        return opposite(both(truths(expression.args[0]), opposite(truths(expression.args[1]))));
      case ExprKind::kIff: {
        const Truths a = truths(expression.args[0]);
        const Truths b = truths(expression.args[1]);
        return {(a.true_too && b.false_too) || (a.false_too && b.true_too),
                a.unknown_too || b.unknown_too,
                (a.true_too && b.true_too) || (a.false_too && b.false_too)};
      }
      default:
        GREYNIC_CHECK(false && "a Boolean expression expected");
    }
    return {};
  }

 private:
  static Truths opposite(const Truths& of) { return {of.true_too, of.unknown_too, of.false_too}; }

  /// The lesser of two truths, false first.
  static Truths both(const Truths& a, const Truths& b) {
    return {a.false_too || b.false_too,
            (a.unknown_too && (b.unknown_too || b.true_too)) || (b.unknown_too && a.true_too),
            a.true_too && b.true_too};
  }

  Truths least(const std::vector<Expr>& args) const {
    Truths out{.true_too = true};
    for (const Expr& arg : args) out = both(out, truths(arg));
    return out;
  }

  Truths of_levels(const Expr& expression) const {
    Truths out;
    for (const int level : levels_of_(expression.parameter)) {
      if (expression.kind == ExprKind::kExists) {
        (level < 0 ? out.false_too : out.true_too) = true;
      } else if (level < 0) {
        out.unknown_too = true;
      } else if (std::ranges::binary_search(expression.levels, level)) {
        out.true_too = true;
      } else {
        out.false_too = true;
      }
    }
    return out;
  }

  Truths compare(const Expr& expression) const {
    const Range left = range(expression.args[0]);
    const Range right = range(expression.args[1]);
    Truths out;
    out.unknown_too = left.maybe_unknown || right.maybe_unknown;
    if (left.empty() || right.empty()) return out;
    const auto can = [&](CompareOp op) { return can_hold(op, left, right); };
    out.true_too = can(expression.op);
    out.false_too = can(greynic::language::opposite(expression.op));
    return out;
  }

  /// Whether some values of both ranges are related so. `holds` is monotone in both values.
  static bool can_hold(CompareOp op, const Range& left, const Range& right) {
    switch (op) {
      case CompareOp::kLess:
      case CompareOp::kLessEqual:
        return holds(op, left.low, right.high);
      case CompareOp::kGreater:
      case CompareOp::kGreaterEqual:
        return holds(op, left.high, right.low);
      case CompareOp::kEqual:
        return holds(CompareOp::kLessEqual, left.low, right.high) &&
               holds(CompareOp::kGreaterEqual, left.high, right.low);
      case CompareOp::kNotEqual:
        return !left.single() || !right.single() || holds(op, left.low, right.low);
    }
    return true;
  }

  Range range(const Expr& expression) const {
    switch (expression.kind) {
      case ExprKind::kNumber:
        return {expression.number, expression.number, false};
      case ExprKind::kNumeric: {
        Range out{kHuge, -kHuge, false};
        for (const int level : levels_of_(expression.parameter)) {
          if (level < 0) {
            out.maybe_unknown = true;
            continue;
          }
          const double number = number_of_(expression.parameter, level);
          out.low = std::min(out.low, number);
          out.high = std::max(out.high, number);
        }
        return out;
      }
      case ExprKind::kAdd:
        return over_args(expression, 0.0, [](double a, double b) { return a + b; });
      case ExprKind::kMultiply:
        return over_args(expression, 1.0, [](double a, double b) { return a * b; });
      case ExprKind::kDivide: {
        const Range over = range(expression.args[0]);
        const Range by = range(expression.args[1]);
        const bool by_zero = by.single() && by.low == 0;
        if (over.empty() || by.empty() || by_zero) return Range::none();
        if (by.low <= 0 && by.high >= 0) return {-kHuge, kHuge, true};
        return corners(over, by, [](double a, double b) { return a / b; });
      }
      default:
        GREYNIC_CHECK(false && "an arithmetic expression expected");
    }
    return {};
  }

  template <typename Combine>
  Range over_args(const Expr& expression, double start, Combine combine) const {
    Range out{start, start, false};
    for (const Expr& arg : expression.args) {
      const Range next = range(arg);
      out = out.empty() || next.empty() ? Range::none() : corners(out, next, combine);
    }
    return out;
  }

  const LevelSets& levels_of_;
  const std::function<double(std::uint32_t, int)>& number_of_;
};

}  // namespace

Truths possible_truths(const Expr& expression, const LevelSets& levels_of,
                       const std::function<double(std::uint32_t, int)>& number_of) {
  return Ranges(levels_of, number_of).truths(expression);
}

}  // namespace greynic::language
