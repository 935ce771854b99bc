#include "compile/normal_form.h"

#include <algorithm>

#include "greynic/core/check.h"

namespace greynic::testgen {

using language::CoverModel;
using language::Expr;
using language::ExprKind;
using language::ModelParameter;

namespace {

/// A level set over the levels of the space.
Expr level_atom(const CoverModel& model, std::uint32_t parameter,
                const std::vector<std::uint16_t>& levels, bool negated, bool with_absent) {
  const ModelParameter& info = model.parameters[parameter];
  const auto own = static_cast<std::uint16_t>(info.levels.size());
  std::vector<std::uint16_t> set;
  for (std::uint16_t level = 0; level < own; ++level) {
    if (std::binary_search(levels.begin(), levels.end(), level) != negated) set.push_back(level);
  }
  if (info.only_if && with_absent) set.push_back(own);
  if (set.empty()) return Expr::constant(false);
  if (set.size() == space_levels(info)) return Expr::constant(true);
  return Expr::level_in(parameter, std::move(set));
}

Expr compare_atom(const CoverModel& model, const Expr& expression, Absent absent, bool negated) {
  Expr atom = expression;
  if (negated) atom.op = opposite(atom.op);
  std::vector<Expr> alternatives;
  alternatives.push_back(std::move(atom));
  if (absent == Absent::kCountsAsTrue) {
    for (const std::uint32_t parameter : parameters_of(expression)) {
      const ModelParameter& info = model.parameters[parameter];
      if (info.only_if) {
        alternatives.push_back(
            Expr::level_in(parameter, {static_cast<std::uint16_t>(info.levels.size())}));
      }
    }
  }
  return alternatives.size() == 1 ? std::move(alternatives[0])
                                  : Expr::any_of(std::move(alternatives));
}

/// An And (or Or, its mirror image) of normal forms, flattened and with constants folded.
Expr joined(bool conjunction, std::vector<Expr> args) {
  const ExprKind kind = conjunction ? ExprKind::kAnd : ExprKind::kOr;
  const ExprKind neutral = conjunction ? ExprKind::kTrue : ExprKind::kFalse;
  const ExprKind deciding = conjunction ? ExprKind::kFalse : ExprKind::kTrue;
  std::vector<Expr> out;
  for (Expr& arg : args) {
    if (arg.kind == deciding) return Expr::constant(!conjunction);
    if (arg.kind == neutral) continue;
    if (arg.kind == kind) {
      std::move(arg.args.begin(), arg.args.end(), std::back_inserter(out));
    } else {
      out.push_back(std::move(arg));
    }
  }
  if (out.empty()) return Expr::constant(conjunction);
  if (out.size() == 1) return std::move(out[0]);
  return conjunction ? Expr::all_of(std::move(out)) : Expr::any_of(std::move(out));
}

bool reads_conditional(const CoverModel& model, const Expr& expression) {
  const std::vector<std::uint32_t> parameters = parameters_of(expression);
  return std::any_of(parameters.begin(), parameters.end(), [&](std::uint32_t parameter) {
    return model.parameters[parameter].only_if.has_value();
  });
}

}  // namespace

std::uint16_t space_levels(const ModelParameter& parameter) {
  return static_cast<std::uint16_t>(parameter.levels.size() + (parameter.only_if ? 1 : 0));
}

Expr normal_form(const CoverModel& model, const Expr& expression, Absent absent, bool negated) {
  const auto arg = [&](std::size_t index, bool flipped) {
    return normal_form(model, expression.args[index], absent, negated != flipped);
  };
  switch (expression.kind) {
    case ExprKind::kTrue:
    case ExprKind::kFalse:
      return Expr::constant((expression.kind == ExprKind::kTrue) != negated);
    case ExprKind::kLevelIn:
      return level_atom(model, expression.parameter, expression.levels, negated,
                        absent == Absent::kCountsAsTrue);
    case ExprKind::kExists: {
      const ModelParameter& info = model.parameters[expression.parameter];
      if (!info.only_if) return Expr::constant(!negated);
      return level_atom(model, expression.parameter, {}, !negated, negated);
    }
    case ExprKind::kCompare:
      return compare_atom(model, expression, absent, negated);
    case ExprKind::kNot:
      return arg(0, true);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      std::vector<Expr> args;
      for (std::size_t i = 0; i < expression.args.size(); ++i) args.push_back(arg(i, false));
      return joined((expression.kind == ExprKind::kAnd) != negated, std::move(args));
    }
    case ExprKind::kImplies: {
      std::vector<Expr> args;
      args.push_back(arg(0, true));
      args.push_back(arg(1, false));
      return joined(negated, std::move(args));
    }
    case ExprKind::kIff: {
      // Without absence <-> stays: expanding a chain of them doubles it at every link.
      if (!reads_conditional(model, expression)) {
        Expr left = normal_form(model, expression.args[0], absent, negated);
        Expr right = normal_form(model, expression.args[1], absent, false);
        return Expr::iff(std::move(left), std::move(right));
      }
      // a <-> b is (!a | b) & (a | !b); its negation (a | b) & (!a | !b).
      const auto side = [&](std::size_t index, bool flipped) {
        return normal_form(model, expression.args[index], absent, flipped);
      };
      std::vector<Expr> first;
      first.push_back(side(0, !negated));
      first.push_back(side(1, false));
      std::vector<Expr> second;
      second.push_back(side(0, negated));
      second.push_back(side(1, true));
      std::vector<Expr> both;
      both.push_back(joined(false, std::move(first)));
      both.push_back(joined(false, std::move(second)));
      return joined(true, std::move(both));
    }
    default:
      GREYNIC_CHECK(false && "a Boolean expression expected");
  }
  return Expr::constant(true);
}

}  // namespace greynic::testgen
