#include "greynic/language/cover_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "greynic/core/check.h"

namespace greynic::language {

namespace {

bool clause_holds(const Clause& clause, const std::vector<int>& row) {
  return std::any_of(clause.begin(), clause.end(), [&](const Literal& literal) {
    return (row[literal.parameter] == literal.level) == literal.positive;
  });
}

}  // namespace

std::size_t negative_count(const CoverModel& model, const std::vector<int>& row) {
  std::size_t count = 0;
  for (std::size_t p = 0; p < row.size(); ++p) {
    const std::vector<bool>& negative = model.parameters[p].negative;
    if (row[p] >= 0 && !negative.empty() && negative[static_cast<std::size_t>(row[p])]) ++count;
  }
  return count;
}

std::optional<std::uint32_t> CoverModel::find(std::string_view name) const {
  for (std::uint32_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].name == name) return p;
  }
  return std::nullopt;
}

bool CoverModel::has_negative_levels() const {
  return std::any_of(parameters.begin(), parameters.end(), [](const ModelParameter& parameter) {
    return std::find(parameter.negative.begin(), parameter.negative.end(), true) !=
           parameter.negative.end();
  });
}

double number_of(const CoverModel& model, std::uint32_t parameter, int level) {
  const std::vector<double>& numbers = model.parameters[parameter].numbers;
  GREYNIC_CHECK(level >= 0 && static_cast<std::size_t>(level) < numbers.size());
  return numbers[static_cast<std::size_t>(level)];
}

bool is_valid(const CoverModel& model, const std::vector<int>& row, std::string* why) {
  const auto broken = [&](const std::string& text) {
    if (why != nullptr) *why = text;
    return false;
  };
  const auto level_of = [&](std::uint32_t p) { return row[p]; };
  const auto number = [&](std::uint32_t p, int level) { return number_of(model, p, level); };
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    const ModelParameter& parameter = model.parameters[p];
    const bool should_exist =
        !parameter.only_if || evaluate(*parameter.only_if, level_of, number) == Truth::kTrue;
    if (should_exist != (row[p] >= 0)) {
      return broken(
          fmt::format("{} must {}be set here", parameter.name, should_exist ? "" : "not "));
    }
  }
  for (const ModelConstraint& constraint : model.constraints) {
    if (evaluate(constraint.expression, level_of, number) == Truth::kFalse) {
      return broken(fmt::format("'{}' ({})", constraint.text, constraint.where));
    }
  }
  for (std::size_t i = 0; i < model.clauses.size(); ++i) {
    if (!clause_holds(model.clauses[i], row)) return broken(model.clause_where[i]);
  }
  if (negative_count(model, row) > 1) return broken("two negative levels in one row");
  if (model.extension) {
    const std::string what = model.extension->broken_by(model, row).what;
    if (!what.empty()) return broken(what);
  }
  return true;
}

}  // namespace greynic::language
