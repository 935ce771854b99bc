#include "greynic/check/array_check.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "greynic/language/model_oracle.h"

namespace greynic::check {

using language::CoverModel;
using language::Feasibility;
using language::LevelRows;
using language::Literal;
using language::ModelOracle;
using language::SubModel;

namespace {

constexpr std::size_t kMostFindings = 20;

using RowSet = std::vector<std::uint64_t>;

/// Values that clauses alone rule out once some others are set: plain unit propagation over the
/// model's clauses. It settles nearly all infeasible tuples of a feature model without the solver.
class ClausePropagation {
 public:
  explicit ClausePropagation(const CoverModel& model) : model_(model) {
    for (const language::ModelParameter& parameter : model.parameters) {
      first_.push_back(value_count_);
      value_count_ += parameter.levels.size();
    }
    occurrences_.resize(value_count_ * 2);
    for (std::uint32_t c = 0; c < model.clauses.size(); ++c) {
      for (const Literal& literal : model.clauses[c]) {
        occurrences_[slot(literal.parameter, literal.level, !literal.positive)].push_back(c);
      }
    }
    state_.assign(value_count_, 0);
  }

  /// Whether the settings contradict each other; else state(value) says what follows from them.
  bool contradicts(const std::vector<ModelOracle::Setting>& settings) {
    std::fill(state_.begin(), state_.end(), std::int8_t{0});
    queue_.clear();
    bool good = true;
    for (const auto& [parameter, level] : settings) {
      good = good && set(parameter, static_cast<std::uint16_t>(level), true);
    }
    while (good && !queue_.empty()) {
      const auto [parameter, level, truth] = queue_.back();
      queue_.pop_back();
      good = follow(parameter, level, truth);
    }
    return !good;
  }

  bool is_ruled_out(std::uint32_t parameter, int level) const {
    return state_[first_[parameter] + static_cast<std::size_t>(level)] < 0;
  }

 private:
  struct Assignment {
    std::uint32_t parameter;
    std::uint16_t level;
    bool truth;
  };

  std::size_t slot(std::uint32_t parameter, std::uint16_t level, bool truth) const {
    return (first_[parameter] + level) * 2 + (truth ? 1 : 0);
  }

  bool set(std::uint32_t parameter, std::uint16_t level, bool truth) {
    std::int8_t& state = state_[first_[parameter] + level];
    const std::int8_t wanted = truth ? 1 : -1;
    if (state != 0) return state == wanted;
    state = wanted;
    queue_.push_back({parameter, level, truth});
    return true;
  }

  bool follow(std::uint32_t parameter, std::uint16_t level, bool truth) {
    const auto levels = static_cast<std::uint16_t>(model_.parameters[parameter].levels.size());
    const bool conditional = model_.parameters[parameter].only_if.has_value();
    if (truth) {
      for (std::uint16_t other = 0; other < levels; ++other) {
        if (other != level && !set(parameter, other, false)) return false;
      }
    } else if (!conditional) {
      int open = -1;
      int open_count = 0;
      for (std::uint16_t other = 0; other < levels; ++other) {
        if (state_[first_[parameter] + other] < 0) continue;
        open = other;
        ++open_count;
      }
      if (open_count == 0) return false;
      if (open_count == 1 && !set(parameter, static_cast<std::uint16_t>(open), true)) return false;
    }
    for (const std::uint32_t c : occurrences_[slot(parameter, level, truth)]) {
      const Literal* unit = nullptr;
      int open_count = 0;
      bool satisfied = false;
      for (const Literal& literal : model_.clauses[c]) {
        const std::int8_t state = state_[first_[literal.parameter] + literal.level];
        if (state == 0) {
          unit = &literal;
          ++open_count;
        } else if ((state > 0) == literal.positive) {
          satisfied = true;
          break;
        }
      }
      if (satisfied || open_count > 1) continue;
      if (open_count == 0) return false;
      if (!set(unit->parameter, unit->level, unit->positive)) return false;
    }
    return true;
  }

  const CoverModel& model_;
  std::vector<std::size_t> first_;
  std::size_t value_count_ = 0;
  std::vector<std::vector<std::uint32_t>>
      occurrences_;  ///< clauses that a value's truth may make unit
  std::vector<std::int8_t> state_;
  std::vector<Assignment> queue_;
};

/// Counts the tuples of some parameters at one strength.
class TupleCounter {
 public:
  TupleCounter(const CoverModel& model, const LevelRows& rows,
               std::vector<std::uint32_t> parameters, int strength, ModelOracle& oracle,
               ClausePropagation& propagation, const CheckProgress& progress, CheckReport& report)
      : model_(model),
        parameters_(std::move(parameters)),
        strength_(static_cast<std::size_t>(strength)),
        oracle_(oracle),
        propagation_(propagation),
        progress_(progress),
        report_(report) {
    for (const SubModel& group : model.groups) {
      if (group.strength < strength) limits_.push_back(&group);
    }
    const std::size_t words = (rows.size() + 63) / 64;
    for (const std::uint32_t p : parameters_) {
      auto& columns = rows_with_.emplace_back(model.parameters[p].levels.size(), RowSet(words));
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if (rows[r][p] < 0) continue;
        columns[static_cast<std::size_t>(rows[r][p])][r / 64] |= std::uint64_t{1} << (r % 64);
      }
    }
    all_rows_.assign(words, ~std::uint64_t{0});
    if (rows.size() % 64 != 0) all_rows_.back() = (std::uint64_t{1} << (rows.size() % 64)) - 1;
    count_completions();
  }

  void count() {
    if (parameters_.size() < strength_ || strength_ == 0) return;
    tell(0);
    extend(0, all_rows_);
  }

 private:
  /// completions_[i][k]: tuples of k of the parameters from the i-th on.
  void count_completions() {
    completions_.assign(parameters_.size() + 1, std::vector<std::uint64_t>(strength_ + 1, 0));
    completions_.back()[0] = 1;
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      completions_[i][0] = 1;
      for (std::size_t k = 1; k <= strength_; ++k) {
        completions_[i][k] =
            completions_[i + 1][k] +
            completions_[i + 1][k - 1] * model_.parameters[parameters_[i]].levels.size();
      }
    }
  }

  /// All tuples that begin before the i-th parameter are counted.
  void tell(std::size_t i) const {
    if (!progress_) return;
    const auto all = static_cast<double>(completions_[0][strength_]);
    progress_(1 - static_cast<double>(completions_[i][strength_]) / all, all);
  }

  void extend(std::size_t from, const RowSet& rows) {
    const std::size_t left = strength_ - settings_.size();
    bool propagated = false;  // the settings so far, when a question about them first comes up
    bool contradiction = false;
    RowSet meet(rows.size());
    for (std::size_t i = from; i + left <= parameters_.size(); ++i) {
      if (settings_.empty() && i > 0) tell(i);
      if (is_exempt(parameters_[i])) continue;
      for (std::size_t level = 0; level < rows_with_[i].size(); ++level) {
        bool covered = false;
        for (std::size_t w = 0; w < rows.size(); ++w) {
          meet[w] = rows[w] & rows_with_[i][level][w];
          covered = covered || meet[w] != 0;
        }
        if (covered) {
          if (left == 1) {
            ++report_.tuples_covered;
            continue;
          }
          settings_.push_back({parameters_[i], static_cast<int>(level)});
          extend(i + 1, meet);
          settings_.pop_back();
          propagated = false;
          continue;
        }
        if (!propagated) contradiction = propagation_.contradicts(settings_);
        propagated = true;
        uncovered(i, static_cast<int>(level), left, contradiction);
        if (left > 1) propagated = false;
      }
    }
  }

  /// A sub-model of lower strength asks for no tuple with more of its parameters than that.
  bool is_exempt(std::uint32_t parameter) const {
    return std::any_of(limits_.begin(), limits_.end(), [&](const SubModel* group) {
      const auto in_group = [&](std::uint32_t p) {
        return std::binary_search(group->parameters.begin(), group->parameters.end(), p);
      };
      if (!in_group(parameter)) return false;
      const auto so_far = std::count_if(settings_.begin(), settings_.end(),
                                        [&](const auto& s) { return in_group(s.parameter); });
      return so_far >= group->strength;
    });
  }

  /// No row has the settings and this one: none of their extensions is covered either.
  void uncovered(std::size_t i, int level, std::size_t left, bool contradiction) {
    const std::uint64_t extensions = completions_[i + 1][left - 1];
    if (contradiction || propagation_.is_ruled_out(parameters_[i], level)) {
      report_.tuples_infeasible += extensions;
      return;
    }
    settings_.push_back({parameters_[i], level});
    switch (oracle_.feasible(settings_)) {
      case Feasibility::kInfeasible:
        report_.tuples_infeasible += extensions;
        break;
      case Feasibility::kUndecided:
        report_.tuples_undecided += extensions;
        break;
      case Feasibility::kFeasible:
        if (left > 1) {
          extend(i + 1, RowSet(all_rows_.size(), 0));
          break;
        }
        ++report_.tuples_missing;
        if (report_.findings.size() < kMostFindings) {
          report_.findings.push_back("missing: " + describe(model_, settings_));
        }
        break;
    }
    settings_.pop_back();
  }

  const CoverModel& model_;
  std::vector<std::uint32_t> parameters_;
  std::size_t strength_;
  ModelOracle& oracle_;
  ClausePropagation& propagation_;
  const CheckProgress& progress_;
  CheckReport& report_;
  std::vector<std::vector<RowSet>> rows_with_;  ///< rows that have a level of the i-th parameter
  RowSet all_rows_;
  std::vector<const SubModel*> limits_;  ///< sub-models of lower strength
  std::vector<std::vector<std::uint64_t>> completions_;
  std::vector<ModelOracle::Setting> settings_;
};

void count_tuples(const CoverModel& model, const LevelRows& rows, int strength,
                  const CheckProgress& progress, CheckReport& report) {
  ModelOracle oracle(model, /*explaining=*/false);
  ClausePropagation propagation(model);
  std::vector<std::uint32_t> covered;
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    if (model.parameters[p].covered) covered.push_back(p);
  }
  const int overall = std::min(strength, static_cast<int>(covered.size()));
  TupleCounter(model, rows, covered, overall, oracle, propagation, progress, report).count();
  for (const SubModel& group : model.groups) {
    if (group.strength == overall) continue;  // covered by the overall strength
    std::vector<std::uint32_t> of_group = group.parameters;
    std::erase_if(of_group, [&](std::uint32_t p) { return !model.parameters[p].covered; });
    const int within = std::min(group.strength, static_cast<int>(of_group.size()));
    TupleCounter(model, rows, of_group, within, oracle, propagation, progress, report).count();
  }
}

bool holds_seed(const std::vector<int>& row, const std::vector<int>& seed) {
  for (std::size_t p = 0; p < row.size(); ++p) {
    if (seed[p] >= 0 && seed[p] != row[p]) return false;
  }
  return true;
}

}  // namespace

CheckReport check_array(const CoverModel& model, const LevelRows& rows, int strength,
                        const CheckProgress& progress) {
  CheckReport report;
  report.rows = rows.size();
  LevelRows valid;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string why;
    if (is_valid(model, rows[r], &why)) {
      valid.push_back(rows[r]);
      continue;
    }
    ++report.invalid_rows;
    if (report.findings.size() < kMostFindings) {
      report.findings.push_back(fmt::format("row {} is invalid: it breaks {}", r + 1, why));
    }
  }
  for (std::size_t i = 0; i < model.seeds.size(); ++i) {
    if (std::ranges::any_of(valid,
                            [&](const auto& row) { return holds_seed(row, model.seeds[i]); })) {
      continue;
    }
    ++report.seeds_missing;
    if (report.findings.size() < kMostFindings) {
      report.findings.push_back(fmt::format("seed {} is in no valid row", i + 1));
    }
  }
  // What was run before is covered, as far as it is valid.
  std::ranges::copy_if(model.already, std::back_inserter(valid),
                       [&](const std::vector<int>& row) { return is_valid(model, row); });
  count_tuples(model, valid, strength, progress, report);
  if (!model.has_negative_levels()) return report;
  // What is valid everywhere must also be covered by rows without any negative level, for one
  // negative level may hide what the rest of its row would show.
  CoverModel positive = model;
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    for (std::uint16_t level = 0; level < model.parameters[p].negative.size(); ++level) {
      if (!model.parameters[p].negative[level]) continue;
      positive.clauses.push_back({{p, level, false}});
      positive.clause_where.emplace_back("no negative level");
    }
  }
  LevelRows positive_rows;
  for (const std::vector<int>& row : valid) {
    if (negative_count(model, row) == 0) positive_rows.push_back(row);
  }
  CheckReport second;
  count_tuples(positive, positive_rows, strength, progress, second);
  report.tuples_missing += second.tuples_missing;
  report.tuples_undecided += second.tuples_undecided;
  for (const std::string& finding : second.findings) {
    if (report.findings.size() < kMostFindings) {
      report.findings.push_back(finding + " (in a row without negative levels)");
    }
  }
  return report;
}

}  // namespace greynic::check
