#include <fmt/core.h>

#include <algorithm>

#include "greynic/causal/explain.h"

namespace greynic::causal {

bool Condition::holds(const FactorValue& value) const {
  if (relation == Relation::kIn) return std::find(among.begin(), among.end(), value) != among.end();
  const double* number = std::get_if<double>(&value);
  const double* bound = std::get_if<double>(&level);
  if (relation == Relation::kEquals || number == nullptr || bound == nullptr) return value == level;
  if (relation == Relation::kAtMost) return *number <= *bound;
  return *number >= *bound && (relation != Relation::kBetween || *number <= upper);
}

bool Condition::holds(const Configuration& configuration) const {
  const FactorValue* value = configuration.find(factor);
  if (value == nullptr) return false;
  if (relation != Relation::kSumAtLeast) return holds(*value);
  double sum = 0.0;
  std::vector<std::string> names = with;
  names.push_back(factor);
  for (const std::string& name : names) {
    const FactorValue* one = configuration.find(name);
    const double* number = one != nullptr ? std::get_if<double>(one) : nullptr;
    if (number == nullptr) return false;
    sum += *number;
  }
  return sum >= std::get<double>(level);
}

bool Cause::holds(const Configuration& configuration) const {
  const auto met = [&](const Condition& condition) { return condition.holds(configuration); };
  return std::all_of(all_of.begin(), all_of.end(), met) &&
         std::none_of(unless.begin(), unless.end(), met);
}

std::string Condition::text() const {
  const auto clear = [](std::optional<double> at) {
    return at ? to_string(FactorValue(*at)) : std::string();
  };
  switch (relation) {
    case Relation::kEquals:
      return fmt::format("{} = {}", factor, to_string(level));
    case Relation::kIn: {
      std::string text = factor + " in {";
      for (std::size_t i = 0; i < among.size(); ++i) {
        text += (i == 0 ? "" : ", ") + to_string(among[i]);
      }
      return text + "}";
    }
    case Relation::kBetween: {
      std::string text = fmt::format("{} between {} and {}", factor, to_string(level),
                                     to_string(FactorValue(upper)));
      if (clear_level && clear_above) {
        text += fmt::format(" (clear at {} and {})", clear(clear_level), clear(clear_above));
      }
      return text;
    }
    case Relation::kAtLeast:
    case Relation::kAtMost:
    case Relation::kSumAtLeast: {
      std::string text = factor;
      for (const std::string& other : with) text += " + " + other;
      text += fmt::format(" {} {}", relation == Relation::kAtMost ? "<=" : ">=", to_string(level));
      return clear_level ? text + fmt::format(" (clear at {})", clear(clear_level)) : text;
    }
  }
  return factor;
}

std::string Cause::text() const {
  std::string text;
  for (const Condition& condition : all_of) {
    if (!text.empty()) text += " and ";
    text += condition.text();
  }
  for (const Condition& exception : unless) text += ", unless " + exception.text();
  return text;
}

}  // namespace greynic::causal
