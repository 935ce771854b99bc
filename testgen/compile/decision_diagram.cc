#include "compile/decision_diagram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>

#include "compile/normal_form.h"
#include "greynic/core/check.h"

namespace greynic::testgen {

using language::CompareOp;
using language::CoverModel;
using language::Expr;
using language::ExprKind;
using language::Truth;

namespace {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

Interval times(const Interval& a, const Interval& b) {
  const double corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

/// Setting one parameter to one level, and folding what follows from it.
class Restriction {
 public:
  Restriction(const CoverModel& model, std::uint32_t parameter, std::uint16_t level)
      : model_(model), parameter_(parameter), level_(level) {}

  Expr apply(const Expr& expression) const {
    switch (expression.kind) {
      case ExprKind::kLevelIn:
        if (expression.parameter != parameter_) return expression;
        return Expr::constant(
            std::binary_search(expression.levels.begin(), expression.levels.end(), level_));
      case ExprKind::kCompare:
        return compare(expression);
      case ExprKind::kAnd:
      case ExprKind::kOr:
        return join(expression);
      case ExprKind::kIff: {
        Expr left = apply(expression.args[0]);
        Expr right = apply(expression.args[1]);
        const bool left_known = left.kind == ExprKind::kTrue || left.kind == ExprKind::kFalse;
        const bool right_known = right.kind == ExprKind::kTrue || right.kind == ExprKind::kFalse;
        if (left_known && right_known) return Expr::constant(left.kind == right.kind);
        return Expr::iff(std::move(left), std::move(right));
      }
      default:
        return expression;
    }
  }

 private:
  bool is_absent() const { return level_ >= model_.parameters[parameter_].levels.size(); }

  Expr join(const Expr& expression) const {
    const bool conjunction = expression.kind == ExprKind::kAnd;
    const ExprKind deciding = conjunction ? ExprKind::kFalse : ExprKind::kTrue;
    const ExprKind neutral = conjunction ? ExprKind::kTrue : ExprKind::kFalse;
    std::vector<Expr> args;
    for (const Expr& arg : expression.args) {
      Expr rest = apply(arg);
      if (rest.kind == deciding) return Expr::constant(!conjunction);
      if (rest.kind != neutral) args.push_back(std::move(rest));
    }
    if (args.empty()) return Expr::constant(conjunction);
    if (args.size() == 1) return std::move(args[0]);
    return conjunction ? Expr::all_of(std::move(args)) : Expr::any_of(std::move(args));
  }

  Expr compare(const Expr& expression) const {
    bool read = false;
    Expr left = arithmetic(expression.args[0], read);
    Expr right = arithmetic(expression.args[1], read);
    if (!read) return expression;
    if (is_absent()) return Expr::constant(false);
    // Constants gather on the right, so that equal partial sums leave equal rests.
    if (left.kind == ExprKind::kAdd && left.args.back().kind == ExprKind::kNumber) {
      const double moved = left.args.back().number;
      left.args.pop_back();
      if (left.args.size() == 1) left = Expr(left.args[0]);
      right = sum({std::move(right), Expr::value(-moved)});
    }
    const Interval l = range(left);
    const Interval r = range(right);
    if (left.kind == ExprKind::kNumber && right.kind == ExprKind::kNumber) {
      return Expr::constant(holds(expression.op, left.number, right.number));
    }
    // A comparison that reads what is not there is false, whatever the bounds say.
    const bool there = !may_be_absent(left) && !may_be_absent(right);
    if (there && decided(expression.op, l, r)) return Expr::constant(true);
    if (decided(opposite(expression.op), l, r)) return Expr::constant(false);
    return Expr::compare(expression.op, std::move(left), std::move(right));
  }

  /// Holds whatever values the two sides take in their ranges.
  static bool decided(CompareOp op, const Interval& left, const Interval& right) {
    switch (op) {
      case CompareOp::kEqual:
        return false;
      case CompareOp::kNotEqual:
        return holds(CompareOp::kLess, left.high, right.low) ||
               holds(CompareOp::kGreater, left.low, right.high);
      case CompareOp::kLess:
      case CompareOp::kLessEqual:
        return holds(op, left.high, right.low);
      case CompareOp::kGreater:
      case CompareOp::kGreaterEqual:
        return holds(op, left.low, right.high);
    }
    return false;
  }

  Expr arithmetic(const Expr& expression, bool& read) const {
    switch (expression.kind) {
      case ExprKind::kNumeric:
        if (expression.parameter != parameter_) return expression;
        read = true;
        return Expr::value(is_absent() ? 0.0 : number_of(model_, parameter_, level_));
      case ExprKind::kAdd: {
        std::vector<Expr> args;
        for (const Expr& arg : expression.args) args.push_back(arithmetic(arg, read));
        return sum(std::move(args));
      }
      case ExprKind::kMultiply: {
        std::vector<Expr> args;
        for (const Expr& arg : expression.args) args.push_back(arithmetic(arg, read));
        return product(std::move(args));
      }
      case ExprKind::kDivide: {
        Expr dividend = arithmetic(expression.args[0], read);
        Expr divisor = arithmetic(expression.args[1], read);
        if (dividend.kind == ExprKind::kNumber && divisor.kind == ExprKind::kNumber) {
          return Expr::value(dividend.number / divisor.number);
        }
        Expr out = expression;
        out.args[0] = std::move(dividend);
        out.args[1] = std::move(divisor);
        return out;
      }
      default:
        return expression;
    }
  }

  /// A flat sum with its constant, if any, last.
  static Expr sum(std::vector<Expr> args) {
    double constant = 0.0;
    std::vector<Expr> rest;
    for (Expr& arg : args) {
      if (arg.kind == ExprKind::kNumber) {
        constant += arg.number;
      } else if (arg.kind == ExprKind::kAdd) {
        for (Expr& inner : arg.args) {
          if (inner.kind == ExprKind::kNumber) {
            constant += inner.number;
          } else {
            rest.push_back(std::move(inner));
          }
        }
      } else {
        rest.push_back(std::move(arg));
      }
    }
    return gathered(ExprKind::kAdd, std::move(rest), constant, 0.0);
  }

  bool may_be_absent(const Expr& expression) const {
    if (expression.kind == ExprKind::kNumeric) {
      return model_.parameters[expression.parameter].only_if.has_value();
    }
    return std::any_of(expression.args.begin(), expression.args.end(),
                       [&](const Expr& arg) { return may_be_absent(arg); });
  }

  Expr product(std::vector<Expr> args) const {
    double constant = 1.0;
    std::vector<Expr> rest;
    for (Expr& arg : args) {
      if (arg.kind == ExprKind::kNumber) {
        constant *= arg.number;
      } else {
        rest.push_back(std::move(arg));
      }
    }
    const bool there =
        std::none_of(rest.begin(), rest.end(), [&](const Expr& arg) { return may_be_absent(arg); });
    if (constant == 0.0 && there) return Expr::value(0.0);
    return gathered(ExprKind::kMultiply, std::move(rest), constant, 1.0);
  }

  static Expr gathered(ExprKind kind, std::vector<Expr> rest, double constant, double neutral) {
    if (rest.empty()) return Expr::value(constant);
    if (constant != neutral) rest.push_back(Expr::value(constant));
    if (rest.size() == 1) return std::move(rest[0]);
    Expr out;
    out.kind = kind;
    out.args = std::move(rest);
    return out;
  }

  Interval range(const Expr& expression) const {
    switch (expression.kind) {
      case ExprKind::kNumber:
        return {expression.number, expression.number};
      case ExprKind::kNumeric: {
        const std::vector<double>& numbers = model_.parameters[expression.parameter].numbers;
        return {*std::min_element(numbers.begin(), numbers.end()),
                *std::max_element(numbers.begin(), numbers.end())};
      }
      case ExprKind::kAdd: {
        Interval total{0.0, 0.0};
        for (const Expr& arg : expression.args) {
          const Interval r = range(arg);
          total.low += r.low;
          total.high += r.high;
        }
        return total;
      }
      case ExprKind::kMultiply: {
        Interval total{1.0, 1.0};
        for (const Expr& arg : expression.args) total = times(total, range(arg));
        return total;
      }
      case ExprKind::kDivide: {
        const Interval divisor = range(expression.args[1]);
        if (divisor.low <= 0.0 && divisor.high >= 0.0) {
          constexpr double kInfinity = std::numeric_limits<double>::infinity();
          return {-kInfinity, kInfinity};
        }
        return times(range(expression.args[0]), {1.0 / divisor.high, 1.0 / divisor.low});
      }
      default:
        GREYNIC_CHECK(false && "arithmetic expected");
    }
    return {};
  }

  const CoverModel& model_;
  std::uint32_t parameter_;
  std::uint16_t level_;
};

void append(std::string& key, const void* data, std::size_t bytes) {
  key.append(static_cast<const char*>(data), bytes);
}

/// Equal expressions have equal keys.
void append_key(const Expr& expression, std::string& key) {
  key.push_back(static_cast<char>(expression.kind));
  switch (expression.kind) {
    case ExprKind::kLevelIn: {
      append(key, &expression.parameter, sizeof expression.parameter);
      const auto count = static_cast<std::uint32_t>(expression.levels.size());
      append(key, &count, sizeof count);
      append(key, expression.levels.data(), count * sizeof(std::uint16_t));
      return;
    }
    case ExprKind::kNumeric:
      append(key, &expression.parameter, sizeof expression.parameter);
      return;
    case ExprKind::kNumber: {
      // Rounded: sums that differ in the last bits only are the same number here.
      const double rounded = std::abs(expression.number) < 1e6
                                 ? std::round(expression.number * 1e9) / 1e9 + 0.0
                                 : expression.number;
      append(key, &rounded, sizeof rounded);
      return;
    }
    default:
      break;
  }
  key.push_back(static_cast<char>(expression.op));
  const auto count = static_cast<std::uint32_t>(expression.args.size());
  append(key, &count, sizeof count);
  for (const Expr& arg : expression.args) append_key(arg, key);
}

void first_appearance(const Expr& expression, std::vector<std::uint32_t>& order) {
  if (expression.kind == ExprKind::kLevelIn || expression.kind == ExprKind::kNumeric) {
    if (std::find(order.begin(), order.end(), expression.parameter) == order.end()) {
      order.push_back(expression.parameter);
    }
  }
  for (const Expr& arg : expression.args) first_appearance(arg, order);
}

class Builder {
 public:
  Builder(const CoverModel& model, std::size_t most_nodes) : model_(model), most_(most_nodes) {
    diagram_.nodes.resize(2);
  }

  std::optional<Diagram> build(const Expr& normal) {
    first_appearance(normal, order_);
    for (std::size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
    diagram_.root = node_for(normal);
    if (too_big_) return std::nullopt;
    return std::move(diagram_);
  }

 private:
  std::size_t first_rank(const Expr& expression) const {
    std::size_t least = order_.size();
    if (expression.kind == ExprKind::kLevelIn || expression.kind == ExprKind::kNumeric) {
      least = rank_.at(expression.parameter);
    }
    for (const Expr& arg : expression.args) least = std::min(least, first_rank(arg));
    return least;
  }

  /// Of an expression that reads no parameter, such as "true <-> true", which is left where a
  /// parameter has one level only.
  std::uint32_t constant(const Expr& expression) const {
    const Truth truth = evaluate(
        expression, [](std::uint32_t) { return -1; }, [](std::uint32_t, int) { return 0.0; });
    return truth == Truth::kTrue ? Diagram::kTrue : Diagram::kFalse;
  }

  std::uint32_t node_for(const Expr& expression) {
    if (expression.kind == ExprKind::kFalse || too_big_) return Diagram::kFalse;
    if (expression.kind == ExprKind::kTrue) return Diagram::kTrue;
    const std::size_t first = first_rank(expression);
    if (first == order_.size()) return constant(expression);
    std::string key;
    append_key(expression, key);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    // Rests are counted, not only nodes: many rests may reduce to few nodes and still take long.
    work_ += key.size();
    if (known_.size() >= most_ || work_ > most_ * kMostBytesPerNode) {
      too_big_ = true;
      return Diagram::kFalse;
    }
    const std::uint32_t parameter = order_[first];
    DiagramNode node;
    node.parameter = parameter;
    const std::uint16_t levels = space_levels(model_.parameters[parameter]);
    for (std::uint16_t level = 0; level < levels; ++level) {
      node.child.push_back(node_for(Restriction(model_, parameter, level).apply(expression)));
    }
    const std::uint32_t made = unique_node(std::move(node));
    known_.emplace(std::move(key), made);
    return made;
  }

  std::uint32_t unique_node(DiagramNode node) {
    const std::uint32_t first = node.child[0];
    if (std::all_of(node.child.begin(), node.child.end(),
                    [&](std::uint32_t child) { return child == first; })) {
      return first;
    }
    std::vector<std::uint32_t> identity = node.child;
    identity.push_back(node.parameter);
    const auto [place, fresh] =
        unique_.emplace(std::move(identity), static_cast<std::uint32_t>(diagram_.nodes.size()));
    if (fresh) diagram_.nodes.push_back(std::move(node));
    return place->second;
  }

  static constexpr std::size_t kMostBytesPerNode = 512;

  const CoverModel& model_;
  std::size_t most_;
  std::size_t work_ = 0;
  bool too_big_ = false;
  std::vector<std::uint32_t> order_;
  std::unordered_map<std::uint32_t, std::size_t> rank_;
  std::unordered_map<std::string, std::uint32_t> known_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> unique_;
  Diagram diagram_;
};

}  // namespace

std::optional<Diagram> build_diagram(const CoverModel& model, const Expr& normal,
                                     std::size_t most_nodes) {
  return Builder(model, most_nodes).build(normal);
}

}  // namespace greynic::testgen
