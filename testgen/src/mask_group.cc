#include "greynic/testgen/mask_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace greynic::testgen {

namespace {

/// "field=value" alternatives, all of one field.
struct Need {
  MatchField field = MatchField::kInPort;
  std::vector<std::string> values;
};

std::optional<Need> need_of(MatchField field) {
  std::string_view text = info(field).needs;
  if (text.empty()) return std::nullopt;
  Need need;
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    const std::string_view alternative = text.substr(0, bar);
    const std::size_t equals = alternative.find('=');
    need.field = match_field_named(alternative.substr(0, equals)).value();
    need.values.emplace_back(alternative.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), bar + 1));
  }
  return need;
}

/// The fields of a group that others in it need, with the values needed.
std::map<MatchField, std::set<std::string>> headers_of(const MaskGroup& group) {
  std::map<MatchField, std::set<std::string>> headers;
  for (const MatchField field : group.fields) {
    const auto need = need_of(field);
    if (!need ||
        std::find(group.fields.begin(), group.fields.end(), need->field) == group.fields.end()) {
      continue;  // a header that the group does not look at is taken for granted
    }
    headers[need->field].insert(need->values.begin(), need->values.end());
  }
  return headers;
}

std::string field_name(const MaskGroup& group, MatchField field) {
  return fmt::format("{}.{}", group.name, info(field).name);
}

std::vector<ModelParameter> parameters_for(const MaskGroup& group, MatchField field,
                                           const std::set<std::string>* header_values) {
  ModelParameter whole;
  whole.name = field_name(group, field);
  const int width = info(field).width_bits;
  if (header_values != nullptr) {
    whole.levels = {"none"};
    whole.levels.insert(whole.levels.end(), header_values->begin(), header_values->end());
    return {whole};
  }
  if (group.bits == MaskBits::kWhole || (group.bits == MaskBits::kPrefix && width < 4)) {
    whole.levels = {"false", "true"};
    return {whole};
  }
  if (group.bits == MaskBits::kPrefix) {
    for (const int length : {0, width / 4, width / 2, width * 3 / 4, width}) {
      whole.levels.push_back(std::to_string(length));
      whole.numbers.push_back(length);
    }
    return {whole};
  }
  std::vector<ModelParameter> bits;
  for (int bit = 0; bit < width; ++bit) {
    ModelParameter parameter;
    parameter.name = fmt::format("{}.{}", whole.name, bit);
    parameter.levels = {"false", "true"};
    bits.push_back(std::move(parameter));
  }
  return bits;
}

}  // namespace

std::optional<MaskBits> mask_bits_named(std::string_view name) {
  if (name == "each") return MaskBits::kEach;
  if (name == "prefix") return MaskBits::kPrefix;
  if (name == "whole") return MaskBits::kWhole;
  return std::nullopt;
}

Result<void> add_mask_group(const MaskGroup& group, CoverModel& model) {
  const auto headers = headers_of(group);
  std::map<MatchField, std::pair<std::uint32_t, std::uint32_t>> range;  // parameters of each field
  for (const MatchField field : group.fields) {
    if (range.contains(field)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("field '{}' twice in one mask", info(field).name));
    }
    const auto header = headers.find(field);
    const auto first = static_cast<std::uint32_t>(model.parameters.size());
    for (ModelParameter& parameter :
         parameters_for(group, field, header == headers.end() ? nullptr : &header->second)) {
      if (model.find(parameter.name)) {
        return fail(ErrorCode::kBadInput, fmt::format("a second parameter '{}'", parameter.name));
      }
      model.parameters.push_back(std::move(parameter));
    }
    range[field] = {first, static_cast<std::uint32_t>(model.parameters.size())};
  }
  for (const MatchField field : group.fields) {
    const auto need = need_of(field);
    if (!need || !range.contains(need->field)) continue;
    const std::uint32_t header = range[need->field].first;
    // Not looked at, or the header is matched with one of the values it needs.
    for (std::uint32_t p = range[field].first; p < range[field].second; ++p) {
      Clause clause = {{p, 0, true}};
      for (std::uint16_t level = 1; level < model.parameters[header].levels.size(); ++level) {
        const std::string& value = model.parameters[header].levels[level];
        if (std::find(need->values.begin(), need->values.end(), value) != need->values.end()) {
          clause.push_back({header, level, true});
        }
      }
      model.clauses.push_back(std::move(clause));
      model.clause_where.push_back(
          fmt::format("{} needs {}", model.parameters[p].name, info(field).needs));
    }
  }
  return {};
}

Result<void> add_mask_order(const std::vector<std::string>& names, CoverModel& model) {
  std::vector<std::uint32_t> places;
  for (const std::string& name : names) {
    ModelParameter parameter;
    parameter.name = name + ".order";
    if (model.find(parameter.name)) {
      return fail(ErrorCode::kBadInput, fmt::format("a second parameter '{}'", parameter.name));
    }
    for (std::size_t place = 1; place <= names.size(); ++place) {
      parameter.levels.push_back(std::to_string(place));
      parameter.numbers.push_back(static_cast<double>(place));
    }
    places.push_back(static_cast<std::uint32_t>(model.parameters.size()));
    model.parameters.push_back(std::move(parameter));
  }
  for (std::size_t a = 0; a < places.size(); ++a) {
    for (std::size_t b = a + 1; b < places.size(); ++b) {
      for (std::uint16_t level = 0; level < names.size(); ++level) {
        model.clauses.push_back({{places[a], level, false}, {places[b], level, false}});
        model.clause_where.push_back(
            fmt::format("'{}' and '{}' cannot be in one place", names[a], names[b]));
      }
    }
  }
  return {};
}

Mask mask_of(const MaskGroup& group, const CoverModel& model, const std::vector<int>& row) {
  Mask mask;
  for (const MatchField field : group.fields) {
    const int width = info(field).width_bits;
    const auto whole = model.find(field_name(group, field));
    if (!whole) {
      U128 bits = 0;
      for (int bit = 0; bit < width; ++bit) {
        const auto one = model.find(fmt::format("{}.{}", field_name(group, field), bit));
        if (one && row[*one] == 1) bits |= U128{1} << bit;
      }
      mask.add(field, bits);
      continue;
    }
    const ModelParameter& parameter = model.parameters[*whole];
    if (row[*whole] <= 0) continue;
    if (parameter.numbers.empty()) {
      mask.add(field, full_mask(field));
      continue;
    }
    const int length = static_cast<int>(parameter.numbers[static_cast<std::size_t>(row[*whole])]);
    mask.add(field, full_mask(field) ^ ((U128{1} << (width - length)) - 1));
  }
  return mask;
}

}  // namespace greynic::testgen
