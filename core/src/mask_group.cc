#include "greynic/core/mask_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace greynic {
namespace {

constexpr const char* kNone = "none";

bool looks_at(const MaskGroup& group, MatchField field) {
  return std::ranges::find(group.fields, field) != group.fields.end();
}

/// The fields of a group that others in it need, with the values needed.
std::map<MatchField, std::set<std::string>> headers_of(const MaskGroup& group) {
  std::map<MatchField, std::set<std::string>> headers;
  for (const MatchField field : group.fields) {
    const auto need = header_need(field);
    if (need && looks_at(group, need->header)) {
      headers[need->header].insert(need->values.begin(), need->values.end());
    }
  }
  return headers;
}

/// Headers taken for granted must be able to stand in one packet.
Result<void> check_granted(const MaskGroup& group) {
  std::map<MatchField, std::pair<MatchField, std::set<std::string>>> left;
  for (const MatchField field : group.fields) {
    const auto need = header_need(field);
    if (!need || looks_at(group, need->header)) continue;
    const std::set<std::string> wanted(need->values.begin(), need->values.end());
    const auto [place, first] = left.try_emplace(need->header, field, wanted);
    if (first) continue;
    std::erase_if(place->second.second,
                  [&](const std::string& value) { return !wanted.contains(value); });
    if (!place->second.second.empty()) continue;
    return fail(ErrorCode::kBadInput,
                fmt::format("{} and {} are never in one packet; add {} to the fields of '{}', so "
                            "that it decides",
                            info(place->second.first).name, info(field).name,
                            info(need->header).name, group.name));
  }
  return {};
}

std::vector<MaskFactor> factors_for(const MaskGroup& group, MatchField field,
                                    const std::set<std::string>* header_values) {
  MaskFactor whole;
  whole.field = field;
  whole.factor.name = fmt::format("{}.{}", group.name, info(field).name);
  const int width = info(field).width_bits;
  if (header_values != nullptr) {
    whole.is_header = true;
    whole.factor.type = FactorType::kCategorical;
    whole.factor.levels.emplace_back(kNone);
    whole.factor.levels.insert(whole.factor.levels.end(), header_values->begin(),
                               header_values->end());
    return {whole};
  }
  if (group.bits == MaskBits::kPrefix && width >= 4) {
    whole.factor.type = FactorType::kNumeric;
    for (const int length : {0, width / 4, width / 2, width * 3 / 4, width}) {
      whole.factor.levels.emplace_back(static_cast<double>(length));
    }
    return {whole};
  }
  whole.factor.type = FactorType::kBool;
  whole.factor.levels = {FactorValue(false), FactorValue(true)};
  if (group.bits != MaskBits::kEach) return {whole};
  std::vector<MaskFactor> bits;
  for (int bit = 0; bit < width; ++bit) {
    MaskFactor one = whole;
    one.factor.name += fmt::format(".{}", bit);
    one.bit = bit;
    bits.push_back(std::move(one));
  }
  return bits;
}

/// The bits of a field that a level of one of its factors looks at.
U128 bits_of(const MaskFactor& factor, const FactorValue& level) {
  const U128 all = full_mask(factor.field);
  if (const double* length = std::get_if<double>(&level)) {
    const int rest = info(factor.field).width_bits - static_cast<int>(*length);
    return rest >= info(factor.field).width_bits ? 0 : all ^ ((U128{1} << rest) - 1);
  }
  if (factor.is_header) return level == FactorValue(std::string(kNone)) ? 0 : all;
  if (level != FactorValue(true)) return 0;
  return factor.bit ? U128{1} << *factor.bit : all;
}

}  // namespace

std::optional<MaskBits> mask_bits_named(std::string_view name) {
  if (name == "each") return MaskBits::kEach;
  if (name == "prefix") return MaskBits::kPrefix;
  if (name == "whole") return MaskBits::kWhole;
  return std::nullopt;
}

std::optional<HeaderNeed> header_need(MatchField field) {
  std::string_view text = info(field).needs;
  if (text.empty()) return std::nullopt;
  HeaderNeed need;
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    const std::string_view alternative = text.substr(0, bar);
    const std::size_t equals = alternative.find('=');
    need.header = match_field_named(alternative.substr(0, equals)).value();
    need.values.emplace_back(alternative.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), bar + 1));
  }
  return need;
}

Result<std::vector<MaskFactor>> mask_factors(const MaskGroup& group) {
  if (auto good = check_granted(group); !good) return pass_on(good);
  const auto headers = headers_of(group);
  std::vector<MaskFactor> factors;
  std::set<MatchField> seen;
  for (const MatchField field : group.fields) {
    if (!seen.insert(field).second) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("field '{}' twice in one mask", info(field).name));
    }
    const auto header = headers.find(field);
    std::ranges::move(
        factors_for(group, field, header == headers.end() ? nullptr : &header->second),
        std::back_inserter(factors));
  }
  return factors;
}

std::vector<Factor> order_factors(std::span<const MaskGroup> groups) {
  std::vector<Factor> factors;
  if (groups.size() < 2) return factors;
  for (const MaskGroup& group : groups) {
    Factor factor;
    factor.name = group.name + ".order";
    for (std::size_t place = 1; place <= groups.size(); ++place) {
      factor.levels.emplace_back(static_cast<double>(place));
    }
    factors.push_back(std::move(factor));
  }
  return factors;
}

Match match_of(const MaskGroup& group, const Configuration& configuration) {
  Match match;
  std::map<MatchField, std::pair<U128, U128>> looked_at;  // value, bits
  const auto factors = mask_factors(group).value();
  for (const MaskFactor& factor : factors) {
    const FactorValue* level = configuration.find(factor.factor.name);
    if (level == nullptr) continue;
    auto& [value, bits] = looked_at[factor.field];
    const U128 own = bits_of(factor, *level);
    bits |= own;
    if (factor.is_header && own != 0) {
      value = field_value_from_string(factor.field, std::get<std::string>(*level)).value();
    }
  }
  for (const auto& [field, at] : looked_at) match.set(field, at.first, at.second);
  return match;
}

}  // namespace greynic
