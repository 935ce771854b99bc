#include <fmt/core.h>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "rule_text.h"

namespace greynic::files {

using nlohmann::json;

namespace {

/// "value", "address/length" or "value/mask".
std::string masked_text(MatchField field, U128 value, U128 bits) {
  Match match;
  match.set(field, value, bits);
  const std::string text = to_string(match);
  return text.substr(text.find('=') + 1);
}

struct MaskedValue {
  U128 value;
  U128 bits;
};

std::optional<MaskedValue> masked_from_text(MatchField field, std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto value = field_value_from_string(field, text.substr(0, slash));
  if (!value) return std::nullopt;
  if (slash == std::string_view::npos) return MaskedValue{*value, full_mask(field)};
  const std::string_view tail = text.substr(slash + 1);
  const FieldFormat format = info(field).format;
  const bool address = format == FieldFormat::kIpv4 || format == FieldFormat::kIpv6;
  if (address && tail.find_first_of(".:x") == std::string_view::npos) {
    const auto length = field_value_from_string(MatchField::kIpTtl, tail);  // a number below 256
    const unsigned width = info(field).width_bits;
    if (!length || *length > width) return std::nullopt;
    const U128 full = full_mask(field);
    const auto host = static_cast<unsigned>(width - static_cast<unsigned>(*length));
    const U128 bits = host == 128 ? U128{0} : full >> host << host;
    if ((*value & ~bits) != 0) return std::nullopt;
    return MaskedValue{*value, bits};
  }
  const auto bits = field_value_from_string(field, tail);
  if (!bits || (*value & ~*bits) != 0) return std::nullopt;
  return MaskedValue{*value, *bits};
}

constexpr std::string_view kTo = "..";          ///< between the ends of a range
constexpr std::string_view kAsRange = "range";  ///< in the place of a mask

/// "1024..65535"; empty for any other text.
std::optional<FieldRange> range_from_text(MatchField field, std::string_view text) {
  const std::size_t to = text.find(kTo);
  if (to == std::string_view::npos) return std::nullopt;
  const auto low = field_value_from_string(field, text.substr(0, to));
  const auto high = field_value_from_string(field, text.substr(to + kTo.size()));
  if (!low || !high || *low > *high) return std::nullopt;
  return FieldRange{field, *low, *high};
}

/// The text of a JSON string, or of a whole number written without quotes.
std::optional<std::string> as_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  return std::nullopt;
}

json object_of(FieldTexts texts) {
  json object = json::object();
  for (auto& [name, text] : texts) object[std::string(name)] = std::move(text);
  return object;
}

}  // namespace

bool set_from_text(Match& match, MatchField field, std::string_view text) {
  if (const auto range = range_from_text(field, text)) {
    match.set_range(field, range->low, range->high);
    return true;
  }
  const auto masked = masked_from_text(field, text);
  if (masked) match.set(field, masked->value, masked->bits);
  return masked.has_value();
}

bool add_from_text(Mask& mask, MatchField field, std::string_view text) {
  if (text == kAsRange) {
    mask.add_range(field);
    return true;
  }
  const auto bits = field_value_from_string(field, text);
  if (bits) mask.add(field, *bits);
  return bits.has_value();
}

FieldTexts texts_of(const Match& match) {
  FieldTexts texts;
  texts.reserve(match.fields().size() + match.ranges().size());
  for (const FieldMatch& entry : match.fields()) {
    texts.emplace_back(info(entry.field).name, masked_text(entry.field, entry.value, entry.bits));
  }
  for (const FieldRange& range : match.ranges()) {
    texts.emplace_back(info(range.field).name, field_value_to_string(range.field, range.low) +
                                                   std::string(kTo) +
                                                   field_value_to_string(range.field, range.high));
  }
  return texts;
}

FieldTexts texts_of(const Mask& mask) {
  FieldTexts texts;
  texts.reserve(mask.fields().size() + mask.ranges().size());
  for (const FieldMask& entry : mask.fields()) {
    const auto high = static_cast<std::uint64_t>(entry.bits >> 64);
    const auto low = static_cast<std::uint64_t>(entry.bits);
    texts.emplace_back(info(entry.field).name, high != 0 ? fmt::format("0x{:x}{:016x}", high, low)
                                                         : fmt::format("0x{:x}", low));
  }
  for (const MatchField field : mask.ranges()) texts.emplace_back(info(field).name, kAsRange);
  return texts;
}

json to_json(const Match& match) { return object_of(texts_of(match)); }

Result<Match> match_from_json(const json& object, const std::string& source,
                              const std::string& json_path) {
  if (!object.is_object()) return bad_value(source, json_path, "must be an object of field: value");
  Match match;
  for (const auto& [name, value] : object.items()) {
    const std::string here = json_path + "/" + name;
    const auto field = match_field_named(name);
    if (!field) return bad_value(source, here, "is not a match field (docs/formats/layout.md)");
    const auto text = as_text(value);
    if (!text || !set_from_text(match, *field, *text)) {
      return bad_value(source, here,
                       fmt::format("{} is no value of this {}-bit field; write value, "
                                   "address/length or value/mask, without bits outside the mask, "
                                   "or low..high where the matcher compares a range",
                                   json_text(value), info(*field).width_bits));
    }
  }
  return match;
}

json to_json(const Mask& mask) { return object_of(texts_of(mask)); }

Result<Mask> mask_from_json(const json& object, const std::string& source,
                            const std::string& json_path) {
  if (!object.is_object()) return bad_value(source, json_path, "must be an object of field: bits");
  Mask mask;
  for (const auto& [name, value] : object.items()) {
    const std::string here = json_path + "/" + name;
    const auto field = match_field_named(name);
    if (!field) return bad_value(source, here, "is not a match field (docs/formats/layout.md)");
    const auto text = as_text(value);
    if (!text || !add_from_text(mask, *field, *text)) {
      return bad_value(source, here,
                       fmt::format("{} is no mask of this {}-bit field", json_text(value),
                                   info(*field).width_bits));
    }
  }
  return mask;
}

json to_json(const Action& action) {
  json object = json::object();
  switch (action.kind) {
    case ActionKind::kForward:
      object["forward"] = action.text;
      break;
    case ActionKind::kDrop:
      object["drop"] = true;
      break;
    case ActionKind::kJump:
      object["jump"] = action.number;
      break;
    case ActionKind::kSetField:
      object["set_field"] = info(action.field).name;
      object["to"] = masked_text(action.field, action.value, action.bits);
      break;
    case ActionKind::kVxlanEncap:
      object["vxlan_encap"] = action.number;
      object["options"] = action.text;
      break;
    case ActionKind::kVxlanDecap:
      object["vxlan_decap"] = true;
      break;
    case ActionKind::kPushVlan:
      object["push_vlan"] = action.number;
      break;
    case ActionKind::kPopVlan:
      object["pop_vlan"] = true;
      break;
    case ActionKind::kCount:
      object["count"] = true;
      break;
    case ActionKind::kMeter:
      object["meter"] = action.number;
      break;
    case ActionKind::kOther:
      object["other"] = action.text;
      break;
  }
  return object;
}

Result<Action> action_from_json(const json& object, const std::string& source,
                                const std::string& json_path) {
  if (!object.is_object() || object.empty()) {
    return bad_value(source, json_path, "must be an object such as {\"forward\": \"p1\"}");
  }
  // An action is one key; two of them take another one beside it.
  const std::string beside = object.contains("vxlan_encap") ? "options"
                             : object.contains("set_field") ? "to"
                                                            : "";
  if (object.size() > (object.contains(beside) ? 2U : 1U)) {
    return bad_value(source, json_path, "is more than one action: write each as its own object");
  }
  const auto flagged = [&](std::string_view key, ActionKind kind) -> Result<Action> {
    if (object.at(std::string(key)) != true) {
      return bad_value(source, json_path + "/" + std::string(key), "must be true");
    }
    return Action{.kind = kind};
  };
  const auto numbered = [&](std::string_view key, ActionKind kind) -> Result<Action> {
    const json& value = object.at(std::string(key));
    if (!value.is_number_unsigned()) {
      return bad_value(source, json_path + "/" + std::string(key), "must be a whole number");
    }
    Action action{.kind = kind, .number = value.get<std::uint64_t>()};
    if (kind == ActionKind::kVxlanEncap) action.text = object.value("options", std::string());
    return action;
  };
  const auto texted = [&](std::string_view key, ActionKind kind) -> Result<Action> {
    const auto text = as_text(object.at(std::string(key)));
    if (!text) return bad_value(source, json_path + "/" + std::string(key), "must be a text");
    return Action{.kind = kind, .text = *text};
  };
  try {
    if (object.contains("forward")) return texted("forward", ActionKind::kForward);
    if (object.contains("other")) return texted("other", ActionKind::kOther);
    if (object.contains("jump")) return numbered("jump", ActionKind::kJump);
    if (object.contains("vxlan_encap")) return numbered("vxlan_encap", ActionKind::kVxlanEncap);
    if (object.contains("push_vlan")) return numbered("push_vlan", ActionKind::kPushVlan);
    if (object.contains("meter")) return numbered("meter", ActionKind::kMeter);
    if (object.contains("drop")) return flagged("drop", ActionKind::kDrop);
    if (object.contains("vxlan_decap")) return flagged("vxlan_decap", ActionKind::kVxlanDecap);
    if (object.contains("pop_vlan")) return flagged("pop_vlan", ActionKind::kPopVlan);
    if (object.contains("count")) return flagged("count", ActionKind::kCount);
    if (object.contains("set_field")) {
      const auto field = match_field_named(object.at("set_field").get<std::string>());
      const auto text = object.contains("to") ? as_text(object.at("to")) : std::nullopt;
      const auto masked = field && text ? masked_from_text(*field, *text) : std::nullopt;
      if (!masked) {
        return bad_value(source, json_path,
                         "set_field needs a match field, and \"to\" a value of it");
      }
      return Action{.kind = ActionKind::kSetField,
                    .field = *field,
                    .value = masked->value,
                    .bits = masked->bits};
    }
  } catch (const json::exception& error) {
    return bad_value(source, json_path, error.what());
  }
  return bad_value(source, json_path,
                   fmt::format("{} is no action that greynic knows (docs/formats/layout.md)",
                               json_text(object)));
}

}  // namespace greynic::files
