#include "greynic/language/model_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cadical.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "greynic/core/check.h"

namespace greynic::language {

namespace {

/// A comparison with more value combinations is not listed; answers are checked against it instead.
constexpr double kMostCombinations = 1 << 16;

/// So many answers may be thrown away because such a comparison fails, before we give up.
constexpr int kMostRefinements = 20'000;

/// Of what rows break: so much is told when the cause was not found.
constexpr std::size_t kMostBroken = 3;

class Terminator : public CaDiCaL::Terminator {
 public:
  explicit Terminator(const std::function<bool()>& stop) : stop_(stop) {}
  bool terminate() override { return stop_(); }

 private:
  const std::function<bool()>& stop_;
};

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
    rules_.back().condition_of = parameter;
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
  ++hits_[breach.what];
  const auto known = breaches_.find(breach.what);
  const int selector = known != breaches_.end() ? known->second : add_rule(breach.what);
  breaches_[breach.what] = selector;
  std::vector<int> literals = {-selector};
  for (const std::uint32_t p : breach.because) literals.push_back(-variable_of({p, row[p]}));
  clause(literals);
  return selector;
}

/// Forbids all rows that break a rule for the same reason as this one: parameters are let go, or
/// take further levels, for as long as the rule stays broken whatever they are, those that nobody
/// asked about first.
void ModelOracle::forbid(const Rule& rule, const std::vector<int>& row,
                         const std::function<bool(const Truths&)>& broken,
                         std::vector<int> literals) {
  std::vector<std::vector<int>> levels(row.size());
  std::vector<std::uint32_t> involved = parameters_of(*rule.expression);
  for (const std::uint32_t p : involved) levels[p] = {row[p]};
  std::stable_partition(involved.begin(), involved.end(),
                        [&](std::uint32_t p) { return !asked_.contains(p); });
  const LevelSets levels_of = [&](std::uint32_t p) -> const std::vector<int>& { return levels[p]; };
  const std::function<double(std::uint32_t, int)> number = [&](std::uint32_t p, int level) {
    return number_of(model_, p, level);
  };
  const auto still_broken = [&] {
    return broken(possible_truths(*rule.expression, levels_of, number));
  };
  const auto all_levels = [&](std::uint32_t p) {
    std::vector<int> all(model_.parameters[p].levels.size());
    std::iota(all.begin(), all.end(), 0);
    if (model_.parameters[p].only_if) all.push_back(-1);
    return all;
  };
  for (const std::uint32_t p : involved) {
    const std::vector<int> all = all_levels(p);
    const std::vector<int> before = std::exchange(levels[p], all);
    if (still_broken()) continue;
    levels[p] = before;
    for (const int level : all) {
      if (level == row[p]) continue;
      levels[p].push_back(level);
      if (!still_broken()) levels[p].pop_back();
    }
    for (const int level : all) {
      if (std::ranges::find(levels[p], level) == levels[p].end()) {
        literals.push_back(variable_of({p, level}));
      }
    }
  }
  clause(literals);
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
    const std::vector<int> switched_off = {rule.selector != 0 ? -rule.selector : -always_};
    if (!rule.condition_of) {
      if (truth != Truth::kFalse) continue;
      forbid(
          rule, row, [](const Truths& truths) { return truths.only_false(); }, switched_off);
      refined = true;
      continue;
    }
    const std::uint32_t p = *rule.condition_of;
    const bool there = row[p] >= 0;
    if ((truth == Truth::kTrue) == there) continue;
    const int absent = level_variable_[p].back();
    const auto broken = [&](const Truths& truths) {
      return there ? !truths.true_too : truths.only_true();
    };
    forbid(rule, row, broken, {switched_off[0], there ? absent : -absent});
    refined = true;
  }
  return refined;
}

/// Rules that the extension adds on the way join the assumptions.
Feasibility ModelOracle::solve(std::vector<int>& assumptions) {
  for (int round = 0; round < kMostRefinements; ++round) {
    if (stop_ && stop_()) return Feasibility::kUndecided;
    for (const int literal : assumptions) solver_->assume(literal);
    const int verdict = solver_->solve();
    if (verdict == 20) return Feasibility::kInfeasible;
    if (verdict != 10) return Feasibility::kUndecided;
    ++rows_;
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
  asked_.clear();
  for (const Setting& setting : settings) {
    assumptions.push_back(variable_of(setting));
    asked_.insert(setting.parameter);
  }
  return solve(assumptions);
}

ModelOracle::Conflict ModelOracle::conflict(const std::vector<Setting>& settings,
                                            const std::function<bool()>& stop) {
  GREYNIC_CHECK(explaining_);
  Terminator terminator(stop);
  stop_ = stop;
  if (stop) solver_->connect_terminator(&terminator);
  hits_.clear();
  rows_ = 0;
  extending_ = model_.extension != nullptr;
  const Feasibility verdict = feasible(settings);
  extending_ = false;  // what was learned is enough; leaving out must not learn it again
  Conflict out;
  if (verdict == Feasibility::kInfeasible) {
    leave_out_spare(settings, out);
  } else if (verdict == Feasibility::kUndecided) {
    out.rows = rows_;
    out.out_of_time = stop && stop();
    for (const auto& [what, rows] : hits_) out.broken.push_back(what);
    std::ranges::sort(out.broken, std::greater(), [&](const auto& what) { return hits_[what]; });
  }
  if (stop) solver_->disconnect_terminator();
  stop_ = {};
  return out;
}

/// After a solve that failed: rules and settings that it needed, without those it can do without.
void ModelOracle::leave_out_spare(const std::vector<Setting>& settings, Conflict& out) {
  std::vector<std::size_t> core;
  const auto keep_failed = [&] {
    std::erase_if(core, [&](std::size_t rule) { return !solver_->failed(rules_[rule].selector); });
    std::erase_if(out.settings,
                  [&](const Setting& one) { return !solver_->failed(variable_of(one)); });
  };
  core.resize(rules_.size());
  std::iota(core.begin(), core.end(), std::size_t{0});
  out.settings = settings;
  keep_failed();
  for (std::size_t i = 0; i < core.size();) {
    std::vector<int> assumptions;
    for (std::size_t k = 0; k < core.size(); ++k) {
      if (k != i) assumptions.push_back(rules_[core[k]].selector);
    }
    for (const Setting& setting : out.settings) assumptions.push_back(variable_of(setting));
    const Feasibility without = solve(assumptions);
    if (without == Feasibility::kInfeasible) {
      keep_failed();
    } else {
      out.minimal = out.minimal && without == Feasibility::kFeasible;
      ++i;
    }
  }
  out.rules.reserve(core.size());
  for (const std::size_t rule : core) out.rules.push_back(rules_[rule].text);
}

std::string describe(const CoverModel& model, const std::vector<ModelOracle::Setting>& settings) {
  std::vector<std::string> parts;
  for (const auto& [parameter, level] : settings) {
    const ModelParameter& info = model.parameters[parameter];
    parts.push_back(fmt::format(
        "{}={}", info.name, level < 0 ? "absent" : info.levels[static_cast<std::size_t>(level)]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe(const ModelOracle::Conflict& conflict) {
  if (!conflict.rules.empty()) {
    return fmt::format("{}{}", fmt::join(conflict.rules, "; "),
                       conflict.minimal || conflict.rules.size() == 1
                           ? ""
                           : " (some may be spare: the time was over)");
  }
  std::string text = fmt::format("the cause was not found {}",
                                 conflict.out_of_time ? "in the time" : "with moderate effort");
  if (conflict.rows > 0) {
    text += fmt::format(": {} rows that fit all else were looked at", conflict.rows);
  }
  if (conflict.broken.empty()) return text;
  const auto shown =
      std::span(conflict.broken).first(std::min(kMostBroken, conflict.broken.size()));
  return fmt::format("{}, which break {} rules, most often: {}", text, conflict.broken.size(),
                     fmt::join(shown, "; "));
}

}  // namespace greynic::language
