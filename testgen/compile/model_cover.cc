#include "greynic/testgen/model_cover.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <unordered_map>

#include "compile/clause_extension.h"
#include "compile/constraint_compiler.h"
#include "compile/normal_form.h"
#include "greynic/core/check.h"
#include "greynic/language/explain_infeasible.h"
#include "validity/space_solver.h"

namespace greynic::testgen {

using language::CoverModel;
using language::Expr;
using language::ExprKind;
using language::ModelParameter;

namespace {

Parameter space_parameter(const ModelParameter& parameter) {
  Parameter out;
  out.level_count = space_levels(parameter);
  out.covered = parameter.covered;
  out.level_weights = parameter.weights;
  out.level_costs = parameter.costs;
  if (parameter.only_if) {
    out.absent_level = static_cast<int>(parameter.levels.size());
    if (!out.level_weights.empty()) out.level_weights.push_back(1.0);
    if (!out.level_costs.empty()) out.level_costs.push_back(0.0);
  }
  return out;
}

/// A conditional parameter exists exactly where its condition is true.
Result<void> add_condition(const CoverModel& model, std::uint32_t index,
                           ConstraintCompiler& compiler) {
  const ModelParameter& parameter = model.parameters[index];
  const auto own = static_cast<std::uint16_t>(parameter.levels.size());
  std::vector<std::uint16_t> present(own);
  for (std::uint16_t level = 0; level < own; ++level) present[level] = level;
  const std::string where = "the condition of " + parameter.name;
  const Expr present_only_if =
      Expr::any_of({Expr::level_in(index, {own}),
                    normal_form(model, *parameter.only_if, Absent::kCountsAsFalse)});
  const Expr absent_only_if_not =
      Expr::any_of({Expr::level_in(index, present),
                    normal_form(model, *parameter.only_if, Absent::kCountsAsTrue, true)});
  for (const Expr& half : {present_only_if, absent_only_if_not}) {
    // A condition that is always (or never) true leaves a constant inside the Or.
    const Expr& rest = half.args[1];
    if (rest.kind == ExprKind::kTrue) continue;
    auto added = compiler.add(rest.kind == ExprKind::kFalse ? half.args[0] : half, where, where);
    if (!added) return added;
  }
  return {};
}

/// At most one negative level in a row.
void add_negative_rules(const CoverModel& model, Space& space) {
  std::vector<Literal> negatives;
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    const std::vector<bool>& negative = model.parameters[p].negative;
    for (std::uint16_t level = 0; level < negative.size(); ++level) {
      if (negative[level]) negatives.push_back({p, level, false});
    }
  }
  for (std::size_t a = 0; a < negatives.size(); ++a) {
    for (std::size_t b = a + 1; b < negatives.size(); ++b) {
      if (negatives[a].parameter != negatives[b].parameter) {
        space.clauses.push_back({negatives[a], negatives[b]});
      }
    }
  }
}

/// The assumptions that a row's levels make; -1 is free.
std::vector<Literal> literals_of(const std::vector<int>& levels) {
  std::vector<Literal> out;
  for (std::uint32_t p = 0; p < levels.size(); ++p) {
    if (levels[p] >= 0) out.push_back({p, static_cast<std::uint16_t>(levels[p]), true});
  }
  return out;
}

/// Seeds and rows that were run before, completed by values for the helpers. A row that was run and
/// is not valid any more covers nothing.
Result<void> add_given_rows(const CoverModel& model, Space& space) {
  if (model.seeds.empty() && model.already.empty()) return {};
  SpaceSolver solver(space);
  for (const std::vector<int>& row : model.already) {
    if (!is_valid(model, row)) continue;
    if (auto whole = solver.solve(literals_of(row))) space.already.push_back(std::move(*whole));
  }
  for (std::size_t i = 0; i < model.seeds.size(); ++i) {
    const auto row = solver.solve(literals_of(model.seeds[i]));
    if (!row) {
      return fail(ErrorCode::kInfeasible,
                  fmt::format("{}: seed {} breaks the constraints: {}", model.source, i,
                              describe_conflict(model, model.seeds[i])));
    }
    space.seeds.push_back(*row);
  }
  return {};
}

/// Of a pass whose time is up before it begins, in seconds.
constexpr double kShortestDeadline = 1e-3;
/// Beyond so many sets, sub-models of lower strength are covered to the overall one instead.
constexpr std::size_t kMostSets = 2000;

/// The engine knows parameters by number only: "parameter #3" becomes "'mtu_bytes'".
void name_parameters(const CoverModel& model, std::string& text) {
  constexpr std::string_view kMark = "parameter #";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
    const std::size_t digits = at + kMark.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    const auto parameter = static_cast<std::size_t>(std::stoul(text.substr(digits, end - digits)));
    if (parameter >= model.parameters.size()) continue;
    text.replace(at, end - at, fmt::format("'{}'", model.parameters[parameter].name));
  }
}

/// All ways to choose `size` of `from`.
std::vector<std::vector<std::uint32_t>> choices(const std::vector<std::uint32_t>& from,
                                                std::size_t size) {
  std::vector<std::vector<std::uint32_t>> out;
  std::vector<std::uint32_t> chosen;
  const std::function<void(std::size_t)> choose = [&](std::size_t next) {
    if (out.size() > kMostSets) return;
    if (chosen.size() == size) {
      out.push_back(chosen);
      return;
    }
    for (std::size_t i = next; i < from.size(); ++i) {
      chosen.push_back(from[i]);
      choose(i + 1);
      chosen.pop_back();
    }
  };
  choose(0);
  return out;
}

/// A sub-model of lower strength than the whole takes tuples away: those with more of its
/// parameters than its strength. What is left are the tuples of sets with only so many parameters
/// of it.
void lower_strength(const CoverModel& model, int strength, Space& space, CoverOptions& options) {
  std::vector<std::vector<bool>> sets = {std::vector<bool>(model.parameters.size(), true)};
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    sets[0][p] = model.parameters[p].covered;
  }
  bool lowered = false;
  for (const SubModel& group : model.groups) {
    if (group.strength >= strength) continue;
    lowered = true;
    const auto kept = choices(group.parameters, static_cast<std::size_t>(group.strength));
    if (kept.size() * sets.size() > kMostSets) return;
    std::vector<std::vector<bool>> smaller;
    for (const std::vector<bool>& set : sets) {
      for (const std::vector<std::uint32_t>& some : kept) {
        std::vector<bool> next = set;
        for (const std::uint32_t p : group.parameters) {
          next[p] = next[p] && std::find(some.begin(), some.end(), p) != some.end();
        }
        smaller.push_back(std::move(next));
      }
    }
    sets = std::move(smaller);
  }
  if (!lowered) return;
  for (const std::vector<bool>& set : sets) {
    SubModel group;
    for (std::uint32_t p = 0; p < set.size(); ++p) {
      if (set[p]) group.parameters.push_back(p);
    }
    group.strength = std::min(strength, static_cast<int>(group.parameters.size()));
    if (group.strength > 1) space.groups.push_back(std::move(group));
  }
  options.strength = 1;
}

}  // namespace

Result<Space> compile(const CoverModel& model, const CompileOptions& options) {
  Space space;
  for (const ModelParameter& parameter : model.parameters) {
    GREYNIC_CHECK(!parameter.levels.empty());
    space.parameters.push_back(space_parameter(parameter));
  }
  space.groups = model.groups;
  space.clauses = model.clauses;
  ConstraintCompiler compiler(model, space, options);
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    if (!model.parameters[p].only_if) continue;
    if (auto added = add_condition(model, p, compiler); !added) return pass_on(added);
  }
  for (const language::ModelConstraint& constraint : model.constraints) {
    const Expr normal = normal_form(model, constraint.expression, Absent::kCountsAsTrue);
    if (auto added = compiler.add(normal, constraint.where, constraint.text); !added) {
      return pass_on(added);
    }
  }
  add_negative_rules(model, space);
  if (model.extension) {
    const auto* extension = dynamic_cast<const ClauseExtension*>(model.extension.get());
    GREYNIC_CHECK(extension != nullptr);
    if (auto added = extension->compile(model, space); !added) return pass_on(added);
  }
  if (auto given = add_given_rows(model, space); !given) return pass_on(given);
  return space;
}

std::vector<int> decode(const CoverModel& model, const Row& row) {
  std::vector<int> levels(model.parameters.size());
  for (std::size_t p = 0; p < levels.size(); ++p) {
    levels[p] = row[p] < model.parameters[p].levels.size() ? row[p] : -1;
  }
  return levels;
}

Result<ModelCover> cover_model(const CoverModel& model, const CoverOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  auto space = compile(model);
  if (!space) return pass_on(space);
  ModelCover out;
  std::vector<Row> positive_rows;
  std::size_t positive_bound = 0;
  double positive_seconds = 0.0;
  CoverOptions pass = options;
  if (options.deadline_seconds > 0) {
    // Compiling took its share; what is left may be nothing, which the engine then says.
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    pass.deadline_seconds = std::max(kShortestDeadline, options.deadline_seconds - spent.count());
  }
  lower_strength(model, options.strength, *space, pass);
  if (model.has_negative_levels()) {
    Space positive = *space;
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
      const std::vector<bool>& negative = model.parameters[p].negative;
      for (std::uint16_t level = 0; level < negative.size(); ++level) {
        if (negative[level]) positive.clauses.push_back({{p, level, false}});
      }
    }
    const auto has_negative = [&](const Row& row) {
      return negative_count(model, decode(model, row)) > 0;
    };
    std::erase_if(positive.seeds, has_negative);
    std::erase_if(positive.already, has_negative);
    pass.deadline_seconds /= 2;
    auto first = cover(positive, pass);
    // A model may be such that every row has a negative level; the second pass then does it all.
    if (first) {
      positive_rows = std::move(first->rows);
      positive_bound = first->lower_bound;
      positive_seconds = first->seconds;
      pass.announce = {};  // the size is known by now
    } else if (first.error().code != ErrorCode::kInfeasible) {
      return pass_on(first);
    }
    std::erase_if(space->seeds,
                  [&](const Row& seed) { return negative_count(model, decode(model, seed)) == 0; });
    space->already.insert(space->already.end(), positive_rows.begin(), positive_rows.end());
  }
  auto covered = cover(*space, pass);
  if (!covered) {
    if (covered.error().code != ErrorCode::kInfeasible) return pass_on(covered);
    return fail(
        ErrorCode::kInfeasible,
        fmt::format("{}: no row satisfies all constraints; these contradict each other: {}",
                    model.source,
                    describe_conflict(model, std::vector<int>(model.parameters.size(), -1))));
  }
  for (const Row& row : positive_rows) out.rows.push_back(decode(model, row));
  for (const Row& row : covered->rows) out.rows.push_back(decode(model, row));
  out.summary = std::move(*covered);
  if (!positive_rows.empty()) {
    // The second pass was given the rows of the first, so its own bound says nothing of both.
    out.summary.lower_bound = positive_bound;
    out.summary.lower_bound_reason = "rows without negative levels alone";
    out.summary.seconds += positive_seconds;
  }
  name_parameters(model, out.summary.lower_bound_reason);
  return out;
}

}  // namespace greynic::testgen
