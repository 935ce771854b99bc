#include "model_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cadical.hpp>

#include "greynic/core/check.h"

namespace greynic::testgen {

namespace {

/// A comparison with more value combinations is not listed; answers are checked against it instead.
constexpr double kMostCombinations = 1 << 16;

/// So many answers may be thrown away because such a comparison fails, before we give up.
constexpr int kMostRefinements = 20'000;

}  // namespace

ModelOracle::ModelOracle(const CoverModel& model, bool explaining)
    : model_(model), explaining_(explaining), solver_(std::make_unique<CaDiCaL::Solver>()) {
  solver_->set("quiet", 1);
  always_ = next_variable_++;
  clause({always_});
  for (const ModelParameter& parameter : model.parameters) {
    std::vector<int> variables(parameter.levels.size() + (parameter.only_if ? 1 : 0));
    for (int& variable : variables) variable = next_variable_++;
    clause(variables);
    for (std::size_t a = 0; a < variables.size(); ++a) {
      for (std::size_t b = a + 1; b < variables.size(); ++b) {
        clause({-variables[a], -variables[b]});
      }
    }
    level_variable_.push_back(std::move(variables));
  }
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    if (model.parameters[p].only_if) add_condition(p);
  }
  for (const ModelConstraint& constraint : model.constraints) {
    too_big_ = false;
    const int selector = add_rule(fmt::format("'{}' ({})", constraint.text, constraint.where));
    const Rails rails = encode(constraint.expression);
    if (too_big_) {
      rules_.back().expression = &constraint.expression;
      lazy_.push_back(rules_.size() - 1);
    } else {
      clause({-selector, -rails.is_false});
    }
  }
  for (std::size_t i = 0; i < model.clauses.size(); ++i) {
    const int selector = add_rule(model.clause_where[i]);
    std::vector<int> literals = {-selector};
    for (const Literal& literal : model.clauses[i]) {
      const int variable = level_variable_[literal.parameter][literal.level];
      literals.push_back(literal.positive ? variable : -variable);
    }
    clause(literals);
  }
  if (model.has_negative_levels()) add_negative_rule();
}

ModelOracle::~ModelOracle() = default;

int ModelOracle::variable_of(const Setting& setting) const {
  const std::vector<int>& variables = level_variable_[setting.parameter];
  const bool absent = setting.level < 0;
  GREYNIC_CHECK(!absent || model_.parameters[setting.parameter].only_if);
  return absent ? variables.back() : variables[static_cast<std::size_t>(setting.level)];
}

/// The literal that switches the rule on.
int ModelOracle::add_rule(std::string text) {
  Rule rule;
  if (explaining_) {
    rule.text = std::move(text);
    rule.selector = next_variable_++;
  }
  rules_.push_back(std::move(rule));
  return explaining_ ? rules_.back().selector : always_;
}

void ModelOracle::clause(std::initializer_list<int> literals) {
  for (const int literal : literals) solver_->add(literal);
  solver_->add(0);
}

void ModelOracle::clause(const std::vector<int>& literals) {
  for (const int literal : literals) solver_->add(literal);
  solver_->add(0);
}

int ModelOracle::all_of(const std::vector<int>& literals) {
  if (literals.size() == 1) return literals[0];
  const int out = next_variable_++;
  std::vector<int> back = {out};
  for (const int literal : literals) {
    clause({-out, literal});
    back.push_back(-literal);
  }
  clause(back);
  return out;
}

int ModelOracle::any_of(const std::vector<int>& literals) {
  std::vector<int> inverse;
  inverse.reserve(literals.size());
  for (const int literal : literals) inverse.push_back(-literal);
  return -all_of(inverse);
}

ModelOracle::Rails ModelOracle::encode(const Expr& expression) {
  std::vector<Rails> args;
  if (expression.kind != ExprKind::kCompare) {
    for (const Expr& arg : expression.args) args.push_back(encode(arg));
  }
  const auto rails = [&](bool truth) {
    std::vector<int> out;
    for (const Rails& arg : args) out.push_back(truth ? arg.is_true : arg.is_false);
    return out;
  };
  switch (expression.kind) {
    case ExprKind::kTrue:
      return {always_, -always_};
    case ExprKind::kFalse:
      return {-always_, always_};
    case ExprKind::kLevelIn: {
      std::vector<int> in;
      std::vector<int> out;
      for (std::size_t level = 0; level < model_.parameters[expression.parameter].levels.size();
           ++level) {
        const bool listed = std::find(expression.levels.begin(), expression.levels.end(), level) !=
                            expression.levels.end();
        (listed ? in : out).push_back(level_variable_[expression.parameter][level]);
      }
      return {any_of(in), any_of(out)};
    }
    case ExprKind::kExists: {
      if (!model_.parameters[expression.parameter].only_if) return {always_, -always_};
      const int absent = level_variable_[expression.parameter].back();
      return {-absent, absent};
    }
    case ExprKind::kCompare: {
      if (const auto encoded = encode_compare(expression)) return *encoded;
      too_big_ = true;
      return {-always_, -always_};
    }
    case ExprKind::kNot:
      return {args[0].is_false, args[0].is_true};
    case ExprKind::kAnd:
      return {all_of(rails(true)), any_of(rails(false))};
    case ExprKind::kOr:
      return {any_of(rails(true)), all_of(rails(false))};
    case ExprKind::kImplies:
      return {any_of({args[0].is_false, args[1].is_true}),
              all_of({args[0].is_true, args[1].is_false})};
    case ExprKind::kIff:
      return {any_of({all_of({args[0].is_true, args[1].is_true}),
                      all_of({args[0].is_false, args[1].is_false})}),
              any_of({all_of({args[0].is_true, args[1].is_false}),
                      all_of({args[0].is_false, args[1].is_true})})};
    default:
      GREYNIC_CHECK(false && "a Boolean expression expected");
  }
  return {};
}

/// Lists every combination of values that the comparison reads. Empty when there are too many.
std::optional<ModelOracle::Rails> ModelOracle::encode_compare(const Expr& expression) {
  const std::vector<std::uint32_t> parameters = parameters_of(expression);
  double combinations = 1.0;
  for (const std::uint32_t p : parameters) {
    combinations *= static_cast<double>(model_.parameters[p].levels.size());
  }
  if (combinations > kMostCombinations) return std::nullopt;
  const Rails out{next_variable_, next_variable_ + 1};
  next_variable_ += 2;
  for (const std::uint32_t p : parameters) {
    if (!model_.parameters[p].only_if) continue;
    clause({-level_variable_[p].back(), -out.is_true});
    clause({-level_variable_[p].back(), -out.is_false});
  }
  std::vector<int> level(parameters.size(), 0);
  const auto level_of = [&](std::uint32_t p) {
    const auto at = std::lower_bound(parameters.begin(), parameters.end(), p) - parameters.begin();
    return level[static_cast<std::size_t>(at)];
  };
  const auto number = [&](std::uint32_t p, int l) { return number_of(model_, p, l); };
  while (true) {
    std::vector<int> literals;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      literals.push_back(-level_variable_[parameters[i]][static_cast<std::size_t>(level[i])]);
    }
    const Truth truth = evaluate(expression, level_of, number);
    for (const auto& [rail, value] :
         {std::pair{out.is_true, Truth::kTrue}, std::pair{out.is_false, Truth::kFalse}}) {
      literals.push_back(truth == value ? rail : -rail);
      clause(literals);
      literals.pop_back();
    }
    std::size_t i = 0;
    for (; i < level.size(); ++i) {
      if (++level[i] < static_cast<int>(model_.parameters[parameters[i]].levels.size())) break;
      level[i] = 0;
    }
    if (i == level.size()) break;
  }
  return out;
}

void ModelOracle::add_condition(std::uint32_t parameter) {
  too_big_ = false;
  const ModelParameter& info = model_.parameters[parameter];
  const int selector = add_rule("the condition of " + info.name);
  const Rails rails = encode(*info.only_if);
  const int absent = level_variable_[parameter].back();
  if (too_big_) {
    rules_.back().expression = &*info.only_if;
    lazy_.push_back(rules_.size() - 1);
    return;
  }
  clause({-selector, -rails.is_true, -absent});
  clause({-selector, rails.is_true, absent});
}

void ModelOracle::add_negative_rule() {
  const int selector = add_rule("at most one negative level in a row");
  std::vector<std::pair<std::uint32_t, int>> negatives;
  for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
    const std::vector<bool>& negative = model_.parameters[p].negative;
    for (std::size_t level = 0; level < negative.size(); ++level) {
      if (!negative[level]) continue;
      for (const auto& [other, variable] : negatives) {
        if (other != p) clause({-selector, -variable, -level_variable_[p][level]});
      }
      negatives.emplace_back(p, level_variable_[p][level]);
    }
  }
}

std::vector<int> ModelOracle::answer() const {
  std::vector<int> row(model_.parameters.size(), -1);
  for (std::size_t p = 0; p < row.size(); ++p) {
    for (std::size_t level = 0; level < model_.parameters[p].levels.size(); ++level) {
      if (solver_->val(level_variable_[p][level]) > 0) row[p] = static_cast<int>(level);
    }
  }
  return row;
}

/// Forbids what breaks the extension in a row; the selector of the rule that says so. Empty: the
/// row breaks nothing.
std::optional<int> ModelOracle::refine_by_extension(const std::vector<int>& row) {
  const Breach breach = model_.extension->broken_by(model_, row);
  if (breach.what.empty()) return std::nullopt;
  const auto known = breaches_.find(breach.what);
  const int selector = known != breaches_.end() ? known->second : add_rule(breach.what);
  breaches_[breach.what] = selector;
  std::vector<int> literals = {-selector};
  for (const std::uint32_t p : breach.because) literals.push_back(-variable_of({p, row[p]}));
  clause(literals);
  return selector;
}

/// Checks the solver's answer against the comparisons that were not encoded; forbids it when one
/// fails. False: the answer stands.
bool ModelOracle::refine() {
  const std::vector<int> row = answer();
  const auto level_of = [&](std::uint32_t p) { return row[p]; };
  const auto number = [&](std::uint32_t p, int level) { return number_of(model_, p, level); };
  bool refined = false;
  for (const std::size_t index : lazy_) {
    const Rule& rule = rules_[index];
    if (rule.selector != 0 && solver_->val(rule.selector) < 0) continue;
    const Truth truth = evaluate(*rule.expression, level_of, number);
    std::vector<std::uint32_t> involved = parameters_of(*rule.expression);
    bool broken = truth == Truth::kFalse;
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
      if (model_.parameters[p].only_if && &*model_.parameters[p].only_if == rule.expression) {
        broken = (truth == Truth::kTrue) != (row[p] >= 0);
        involved.push_back(p);
      }
    }
    if (!broken) continue;
    std::vector<int> literals = {rule.selector != 0 ? -rule.selector : -always_};
    for (const std::uint32_t p : involved) literals.push_back(-variable_of({p, row[p]}));
    clause(literals);
    refined = true;
  }
  return refined;
}

/// Rules that the extension adds on the way join the assumptions.
Feasibility ModelOracle::solve(std::vector<int>& assumptions) {
  for (int round = 0; round < kMostRefinements; ++round) {
    for (const int literal : assumptions) solver_->assume(literal);
    const int verdict = solver_->solve();
    if (verdict == 20) return Feasibility::kInfeasible;
    if (verdict != 10) return Feasibility::kUndecided;
    if (!lazy_.empty() && refine()) continue;
    if (!extending_) return Feasibility::kFeasible;
    const auto selector = refine_by_extension(answer());
    if (!selector) return Feasibility::kFeasible;
    if (std::ranges::find(assumptions, *selector) == assumptions.end()) {
      assumptions.push_back(*selector);
    }
  }
  return Feasibility::kUndecided;
}

Feasibility ModelOracle::feasible(const std::vector<Setting>& settings) {
  std::vector<int> assumptions;
  for (const Rule& rule : rules_) {
    if (rule.selector != 0) assumptions.push_back(rule.selector);
  }
  for (const Setting& setting : settings) assumptions.push_back(variable_of(setting));
  return solve(assumptions);
}

std::vector<std::string> ModelOracle::conflict(const std::vector<Setting>& settings) {
  GREYNIC_CHECK(explaining_);
  extending_ = model_.extension != nullptr;
  const Feasibility verdict = feasible(settings);
  extending_ = false;  // what was learned is enough; leaving out must not learn it again
  if (verdict != Feasibility::kInfeasible) return {};
  std::vector<std::size_t> core;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (solver_->failed(rules_[i].selector)) core.push_back(i);
  }
  // Leave out one after the other for as long as the rest still contradicts.
  for (std::size_t i = 0; i < core.size();) {
    std::vector<int> assumptions;
    for (std::size_t k = 0; k < core.size(); ++k) {
      if (k != i) assumptions.push_back(rules_[core[k]].selector);
    }
    for (const Setting& setting : settings) assumptions.push_back(variable_of(setting));
    if (solve(assumptions) == Feasibility::kInfeasible) {
      std::erase_if(core,
                    [&](std::size_t rule) { return !solver_->failed(rules_[rule].selector); });
    } else {
      ++i;
    }
  }
  std::vector<std::string> out;
  out.reserve(core.size());
  for (const std::size_t rule : core) out.push_back(rules_[rule].text);
  return out;
}

std::string describe_conflict(const CoverModel& model, const std::vector<int>& levels) {
  std::vector<ModelOracle::Setting> settings;
  for (std::uint32_t p = 0; p < levels.size(); ++p) {
    if (levels[p] >= 0) settings.push_back({p, levels[p]});
  }
  ModelOracle oracle(model, /*explaining=*/true);
  const std::vector<std::string> rules = oracle.conflict(settings);
  if (rules.empty() && model.extension) {
    return "the topology: no packet could then go where it should in every flow";
  }
  return rules.empty() ? "(no smaller set found)" : fmt::format("{}", fmt::join(rules, "; "));
}

}  // namespace greynic::testgen
