#include "compile/constraint_compiler.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "compile/decision_diagram.h"
#include "compile/normal_form.h"

namespace greynic::testgen {

using language::Expr;
using language::ExprKind;

namespace {

/// Up to so many ways to break a constraint are forbidden one by one; helpers cost the engines more
/// than clauses do.
constexpr double kMostPlainClauses = 1000;

/// First attempt at a constraint as one diagram, before it is taken apart.
constexpr std::size_t kSmallDiagram = 2000;

/// Of each node, the ways that lead from it to false.
std::vector<double> ways_to_false(const Diagram& diagram) {
  std::vector<double> ways(diagram.nodes.size(), 0.0);
  ways[Diagram::kFalse] = 1.0;
  for (std::size_t n = 2; n < diagram.nodes.size(); ++n) {
    std::vector<std::uint32_t> children = diagram.nodes[n].child;
    std::sort(children.begin(), children.end());
    children.erase(std::unique(children.begin(), children.end()), children.end());
    for (const std::uint32_t child : children) ways[n] += ways[child];
  }
  return ways;
}

/// The levels of a node that lead to each of its children.
std::map<std::uint32_t, std::vector<bool>> levels_by_child(const DiagramNode& node) {
  std::map<std::uint32_t, std::vector<bool>> out;
  for (std::size_t level = 0; level < node.child.size(); ++level) {
    auto& set = out[node.child[level]];
    set.resize(node.child.size());
    set[level] = true;
  }
  return out;
}

}  // namespace

Result<void> ConstraintCompiler::add(const Expr& normal, std::string_view where,
                                     std::string_view text) {
  if (add_whole({}, normal)) return {};
  return too_big(where, text);
}

Result<std::optional<Literal>> ConstraintCompiler::literal_for(const Expr& truth,
                                                               const Expr& falsity, bool& constant,
                                                               std::string_view where,
                                                               std::string_view text) {
  if (truth.kind == ExprKind::kTrue || truth.kind == ExprKind::kFalse) {
    constant = truth.kind == ExprKind::kTrue;
    return std::optional<Literal>{};
  }
  if (truth.kind == ExprKind::kLevelIn && truth.levels.size() == 1) {
    return Literal{truth.parameter, truth.levels[0], true};
  }
  if (falsity.kind == ExprKind::kLevelIn && falsity.levels.size() == 1) {
    return Literal{falsity.parameter, falsity.levels[0], false};
  }
  const std::uint32_t helper = new_helper();
  if (!add_whole({{helper, 1, false}}, truth) || !add_whole({{helper, 1, true}}, falsity)) {
    return too_big(where, text);
  }
  return Literal{helper, 1, true};
}

tl::unexpected<Error> ConstraintCompiler::too_big(std::string_view where,
                                                  std::string_view text) const {
  return fail(
      ErrorCode::kTooBig,
      fmt::format("{}: at {}: the constraint '{}' joins too many values: its decision "
                  "diagram needs more than {} nodes; split it, or give its parameters fewer "
                  "levels",
                  model_.source, where, text, options_.most_nodes));
}

/// First with small diagrams, taken apart where they grow; then with large ones.
bool ConstraintCompiler::add_whole(const Clause& unless, const Expr& normal) {
  const std::size_t clauses = space_.clauses.size();
  const std::size_t parameters = space_.parameters.size();
  for (const std::size_t most_nodes : {kSmallDiagram, options_.most_nodes}) {
    if (add_under(unless, normal, most_nodes)) return true;
    space_.clauses.resize(clauses);
    space_.parameters.resize(parameters);
  }
  return false;
}

bool ConstraintCompiler::add_under(const Clause& unless, const Expr& normal,
                                   std::size_t most_nodes) {
  if (normal.kind == ExprKind::kTrue) return true;
  if (normal.kind == ExprKind::kAnd) {
    return std::all_of(normal.args.begin(), normal.args.end(),
                       [&](const Expr& arg) { return add_under(unless, arg, most_nodes); });
  }
  // What an attempt added before it gave up is taken back.
  const std::size_t clauses = space_.clauses.size();
  const std::size_t parameters = space_.parameters.size();
  if (add_diagram(unless, normal, most_nodes)) return true;
  if (add_parts(unless, normal, most_nodes)) return true;
  space_.clauses.resize(clauses);
  space_.parameters.resize(parameters);
  return false;
}

bool ConstraintCompiler::add_diagram(const Clause& unless, const Expr& normal,
                                     std::size_t most_nodes) {
  const auto diagram = build_diagram(model_, normal, most_nodes);
  if (!diagram) return false;
  if (diagram->root == Diagram::kTrue) return true;
  if (diagram->root == Diagram::kFalse) {
    space_.clauses.push_back(unless);
    return true;
  }
  if (ways_to_false(*diagram)[diagram->root] <= kMostPlainClauses) {
    // Each way to false is forbidden by one clause.
    const std::function<void(std::uint32_t, const Clause&)> forbid = [&](std::uint32_t at,
                                                                         const Clause& so_far) {
      if (at == Diagram::kTrue) return;
      if (at == Diagram::kFalse) {
        space_.clauses.push_back(so_far);
        return;
      }
      for (const auto& [child, levels] : levels_by_child(diagram->nodes[at])) {
        if (child == Diagram::kTrue) continue;
        Clause longer = so_far;
        add_not_in(longer, diagram->nodes[at].parameter, levels);
        forbid(child, longer);
      }
    };
    forbid(diagram->root, unless);
    return true;
  }
  // helper[n] is set when the way taken passes node n: then one of its children must be passed too.
  std::map<std::uint32_t, std::uint32_t> helper;
  for (std::uint32_t n = diagram->root; n >= 2; --n) {
    const bool is_root = n == diagram->root;
    if (!is_root && !helper.contains(n)) continue;
    Clause here = is_root ? unless : Clause{{helper[n], 1, false}};
    for (const auto& [child, levels] : levels_by_child(diagram->nodes[n])) {
      if (child == Diagram::kTrue) continue;
      Clause clause = here;
      add_not_in(clause, diagram->nodes[n].parameter, levels);
      if (child != Diagram::kFalse) {
        if (!helper.contains(child)) helper[child] = new_helper();
        clause.push_back({helper[child], 1, true});
      }
      space_.clauses.push_back(std::move(clause));
    }
  }
  return true;
}

bool ConstraintCompiler::add_parts(const Clause& unless, const Expr& normal,
                                   std::size_t most_nodes) {
  if (normal.kind == ExprKind::kIff) {
    // Only parameters that always exist are read under an Iff, so absence plays no part.
    const auto side = [&](std::size_t index, bool negated) {
      return normal_form(model_, normal.args[index], Absent::kCountsAsFalse, negated);
    };
    return add_under(unless, Expr::any_of({side(0, true), side(1, false)}), most_nodes) &&
           add_under(unless, Expr::any_of({side(0, false), side(1, true)}), most_nodes);
  }
  if (normal.kind != ExprKind::kOr) return false;
  Clause some_part = unless;
  std::vector<std::pair<std::uint32_t, const Expr*>> parts;
  for (const Expr& arg : normal.args) {
    if (arg.kind == ExprKind::kLevelIn) {
      for (const std::uint16_t level : arg.levels) {
        some_part.push_back({arg.parameter, level, true});
      }
      continue;
    }
    const std::uint32_t helper = new_helper();
    some_part.push_back({helper, 1, true});
    parts.emplace_back(helper, &arg);
  }
  space_.clauses.push_back(std::move(some_part));
  return std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return add_under({{part.first, 1, false}}, *part.second, most_nodes);
  });
}

std::uint32_t ConstraintCompiler::new_helper() {
  Parameter helper;
  helper.level_count = 2;
  helper.covered = false;
  space_.parameters.push_back(helper);
  return static_cast<std::uint32_t>(space_.parameters.size() - 1);
}

void ConstraintCompiler::add_not_in(Clause& clause, std::uint32_t parameter,
                                    const std::vector<bool>& set) const {
  const auto size = static_cast<std::size_t>(std::count(set.begin(), set.end(), true));
  for (std::size_t level = 0; level < set.size(); ++level) {
    if (size == 1 ? set[level] : !set[level]) {
      clause.push_back({parameter, static_cast<std::uint16_t>(level), size != 1});
    }
  }
}

}  // namespace greynic::testgen
