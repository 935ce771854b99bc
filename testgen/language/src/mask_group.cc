#include "greynic/language/mask_group.h"

#include <fmt/core.h>

#include <algorithm>

namespace greynic::language {

namespace {

Result<void> add_parameter(const Factor& factor, CoverModel& model) {
  if (model.find(factor.name)) {
    return fail(ErrorCode::kBadInput, fmt::format("a second parameter '{}'", factor.name));
  }
  ModelParameter parameter;
  parameter.name = factor.name;
  for (const FactorValue& level : factor.levels) {
    parameter.levels.push_back(to_string(level));
    if (const auto* number = std::get_if<double>(&level)) parameter.numbers.push_back(*number);
  }
  model.parameters.push_back(std::move(parameter));
  return {};
}

std::optional<std::uint16_t> level_of(const CoverModel& model, std::uint32_t parameter,
                                      const std::string& level) {
  const auto& levels = model.parameters[parameter].levels;
  const auto found = std::ranges::find(levels, level);
  if (found == levels.end()) return std::nullopt;
  return static_cast<std::uint16_t>(found - levels.begin());
}

}  // namespace

Result<void> add_mask_group(const MaskGroup& group, CoverModel& model) {
  const auto factors = mask_factors(group);
  if (!factors) return pass_on(factors);
  for (const MaskFactor& factor : *factors) {
    if (auto added = add_parameter(factor.factor, model); !added) return added;
  }
  add_header_clauses(group, model);
  return {};
}

Result<void> add_mask_order(std::span<const MaskGroup> groups, CoverModel& model) {
  for (const Factor& factor : order_factors(groups)) {
    if (auto added = add_parameter(factor, model); !added) return added;
  }
  add_order_clauses(groups, model);
  return {};
}

void add_header_clauses(const MaskGroup& group, CoverModel& model) {
  const auto factors = mask_factors(group).value();
  for (const MaskFactor& factor : factors) {
    const auto need = header_need(factor.field);
    if (!need) continue;
    const auto header = std::ranges::find_if(
        factors, [&](const MaskFactor& other) { return other.field == need->header; });
    if (header == factors.end()) continue;  // taken for granted
    const std::uint32_t own = model.find(factor.factor.name).value();
    const std::uint32_t other = model.find(header->factor.name).value();
    // Not looked at, or the header is matched with one of the values it needs.
    Clause clause;
    if (const auto nothing = level_of(model, own, to_string(factor.factor.levels.front()))) {
      clause.push_back({own, *nothing, true});
    }
    for (const std::string& value : need->values) {
      if (const auto level = level_of(model, other, value)) clause.push_back({other, *level, true});
    }
    model.clauses.push_back(std::move(clause));
    model.clause_where.push_back(
        fmt::format("{} needs {}", factor.factor.name, info(factor.field).needs));
  }
}

void add_order_clauses(std::span<const MaskGroup> groups, CoverModel& model) {
  const auto factors = order_factors(groups);
  for (std::size_t a = 0; a < factors.size(); ++a) {
    for (std::size_t b = a + 1; b < factors.size(); ++b) {
      const std::uint32_t first = model.find(factors[a].name).value();
      const std::uint32_t second = model.find(factors[b].name).value();
      for (const std::string& place : model.parameters[first].levels) {
        const auto left = level_of(model, first, place);
        const auto right = level_of(model, second, place);
        if (!right) continue;
        model.clauses.push_back({{first, *left, false}, {second, *right, false}});
        model.clause_where.push_back(
            fmt::format("'{}' and '{}' cannot be in one place", groups[a].name, groups[b].name));
      }
    }
  }
}

}  // namespace greynic::language
