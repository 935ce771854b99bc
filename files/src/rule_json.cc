#include "greynic/files/core_json.h"

#include <fmt/core.h>

#include "greynic/core/units.h"
#include "greynic/files/json_file.h"

namespace greynic::files {
namespace {

using nlohmann::json;

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

/// The text of a JSON string, or of a whole number written without quotes.
std::optional<std::string> as_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  return std::nullopt;
}

json numbers(const std::map<std::string, double>& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

Result<std::map<std::string, double>> numbers_from_json(const json& object,
                                                        const std::string& source,
                                                        const std::string& json_path) {
  std::map<std::string, double> values;
  if (!object.is_object()) return bad_value(source, json_path, "must be an object of numbers");
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number()) {
      return bad_value(source, json_path + "/" + name, "must be a number");
    }
    values[name] = value.get<double>();
  }
  return values;
}

}  // namespace

json to_json(const FactorValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const double* number = std::get_if<double>(&value)) {
    const auto whole = static_cast<std::int64_t>(*number);
    if (static_cast<double>(whole) == *number) return whole;
    return *number;
  }
  return std::get<std::string>(value);
}

json to_json(const Configuration& configuration) {
  json object = json::object();
  for (const auto& [name, value] : configuration.levels()) object[name] = to_json(value);
  return object;
}

Result<Configuration> configuration_from_json(const json& object, const std::string& source,
                                              const std::string& json_path) {
  if (!object.is_object()) {
    return bad_value(source, json_path, "must be an object of factor: level");
  }
  Configuration configuration;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean()) {
      configuration.set(name, value.get<bool>());
    } else if (value.is_number()) {
      configuration.set(name, value.get<double>());
    } else if (value.is_string()) {
      configuration.set(name, value.get<std::string>());
    } else {
      return bad_value(source, json_path + "/" + name,
                       "a level must be a number, a text, true or false");
    }
  }
  return configuration;
}

json to_json(const Match& match) {
  json object = json::object();
  for (const FieldMatch& entry : match.fields()) {
    object[std::string(info(entry.field).name)] = masked_text(entry.field, entry.value, entry.bits);
  }
  return object;
}

Result<Match> match_from_json(const json& object, const std::string& source,
                              const std::string& json_path) {
  if (!object.is_object()) return bad_value(source, json_path, "must be an object of field: value");
  Match match;
  for (const auto& [name, value] : object.items()) {
    const std::string here = json_path + "/" + name;
    const auto field = match_field_named(name);
    if (!field) return bad_value(source, here, "is not a match field (docs/formats/layout.md)");
    const auto text = as_text(value);
    const auto masked = text ? masked_from_text(*field, *text) : std::nullopt;
    if (!masked) {
      return bad_value(source, here,
                       fmt::format("{} is no value of this {}-bit field; write value, "
                                   "address/length or value/mask, without bits outside the mask",
                                   value.dump(), info(*field).width_bits));
    }
    match.set(*field, masked->value, masked->bits);
  }
  return match;
}

json to_json(const Mask& mask) {
  json object = json::object();
  for (const FieldMask& entry : mask.fields()) {
    const auto high = static_cast<std::uint64_t>(entry.bits >> 64);
    const auto low = static_cast<std::uint64_t>(entry.bits);
    object[std::string(info(entry.field).name)] =
        high != 0 ? fmt::format("0x{:x}{:016x}", high, low) : fmt::format("0x{:x}", low);
  }
  return object;
}

Result<Mask> mask_from_json(const json& object, const std::string& source,
                            const std::string& json_path) {
  if (!object.is_object()) return bad_value(source, json_path, "must be an object of field: bits");
  Mask mask;
  for (const auto& [name, value] : object.items()) {
    const std::string here = json_path + "/" + name;
    const auto field = match_field_named(name);
    if (!field) return bad_value(source, here, "is not a match field (docs/formats/layout.md)");
    const auto text = as_text(value);
    const auto bits = text ? field_value_from_string(*field, *text) : std::nullopt;
    if (!bits) {
      return bad_value(
          source, here,
          fmt::format("{} is no mask of this {}-bit field", value.dump(), info(*field).width_bits));
    }
    mask.add(*field, *bits);
  }
  return mask;
}

json to_json(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      return {{"forward", action.text}};
    case ActionKind::kDrop:
      return {{"drop", true}};
    case ActionKind::kJump:
      return {{"jump", action.number}};
    case ActionKind::kSetField:
      return {{"set_field", info(action.field).name},
              {"to", masked_text(action.field, action.value, action.bits)}};
    case ActionKind::kVxlanEncap:
      return {{"vxlan_encap", action.number}, {"options", action.text}};
    case ActionKind::kVxlanDecap:
      return {{"vxlan_decap", true}};
    case ActionKind::kPushVlan:
      return {{"push_vlan", action.number}};
    case ActionKind::kPopVlan:
      return {{"pop_vlan", true}};
    case ActionKind::kCount:
      return {{"count", true}};
    case ActionKind::kMeter:
      return {{"meter", action.number}};
    case ActionKind::kOther:
      return {{"other", action.text}};
  }
  return nullptr;
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
  return bad_value(
      source, json_path,
      fmt::format("{} is no action that greynic knows (docs/formats/layout.md)", object.dump()));
}

json to_json(const Layout& layout) {
  json tables = json::array();
  for (const LayoutTable& table : layout.tables) {
    json matchers = json::array();
    for (const Matcher& matcher : table.matchers) {
      json rules = json::array();
      for (const FlowRule& rule : matcher.rules) {
        json actions = json::array();
        for (const Action& action : rule.actions) actions.push_back(to_json(action));
        rules.push_back({{"match", to_json(rule.match)},
                         {"actions", std::move(actions)},
                         {"weight", rule.weight},
                         {"from", rule.from}});
      }
      matchers.push_back({{"mask", to_json(matcher.mask)},
                          {"priority", matcher.priority},
                          {"rules", std::move(rules)}});
    }
    tables.push_back({{"id", table.id}, {"matchers", std::move(matchers)}});
  }
  return {{"version", 1}, {"tables", std::move(tables)}};
}

namespace {

Result<FlowRule> layout_rule_from_json(const json& object, const Matcher& matcher,
                                       std::uint32_t table, const std::string& source,
                                       const std::string& here) {
  FlowRule rule;
  rule.table = table;
  rule.priority = matcher.priority;
  auto match = match_from_json(object.at("match"), source, here + "/match");
  if (!match) return pass_on(match);
  rule.match = std::move(*match);
  if (rule.match.mask() != matcher.mask) {
    return bad_value(source, here + "/match",
                     fmt::format("looks at {}, but its matcher's mask is {}",
                                 to_string(rule.match.mask()), to_string(matcher.mask)));
  }
  for (const json& item : object.at("actions")) {
    auto action = action_from_json(item, source, here + "/actions");
    if (!action) return pass_on(action);
    rule.actions.push_back(std::move(*action));
  }
  rule.weight = object.value("weight", 0.0);
  rule.from = object.value("from", std::vector<std::uint32_t>{});
  return rule;
}

}  // namespace

Result<Layout> layout_from_json(const json& document, const std::string& source) {
  if (auto fits = check_schema(document, "layout", source); !fits) return pass_on(fits);
  Layout layout;
  try {
    for (const json& table_json : document.at("tables")) {
      const std::string at_table = fmt::format("/tables/{}", layout.tables.size());
      LayoutTable table;
      table.id = table_json.at("id").get<std::uint32_t>();
      for (const LayoutTable& other : layout.tables) {
        if (other.id == table.id) return bad_value(source, at_table + "/id", "stands twice");
      }
      for (const json& matcher_json : table_json.at("matchers")) {
        const std::string here = fmt::format("{}/matchers/{}", at_table, table.matchers.size());
        Matcher matcher;
        auto mask = mask_from_json(matcher_json.at("mask"), source, here + "/mask");
        if (!mask) return pass_on(mask);
        matcher.mask = std::move(*mask);
        matcher.priority = matcher_json.value("priority", RulePriority{0});
        for (const json& rule_json : matcher_json.at("rules")) {
          auto rule = layout_rule_from_json(rule_json, matcher, table.id, source,
                                            fmt::format("{}/rules/{}", here, matcher.rules.size()));
          if (!rule) return pass_on(rule);
          matcher.rules.push_back(std::move(*rule));
        }
        table.matchers.push_back(std::move(matcher));
      }
      layout.tables.push_back(std::move(table));
    }
  } catch (const json::exception& error) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", source, error.what()));
  }
  return layout;
}

Result<Layout> read_layout(const std::string& path) {
  auto text = read_text(path);
  if (!text) return pass_on(text);
  auto document = parse_json(*text, path);
  if (!document) return pass_on(document);
  return layout_from_json(*document, path);
}

Result<void> write_layout(const Layout& layout, const std::string& path) {
  return write_text(path, to_json(layout).dump(1) + "\n");
}

json to_json(const Observation& observation) {
  json object = {{"configuration", to_json(observation.asked)},
                 {"repeat", observation.repeat},
                 {"outcome", to_string(observation.outcome)},
                 {"seed", observation.seed},
                 {"elapsed_seconds", observation.elapsed_seconds}};
  if (!observation.granted.empty()) object["granted"] = to_json(observation.granted);
  if (!observation.reason.empty()) object["reason"] = observation.reason;
  json errors = json::object();
  for (const auto& [name, measure] : observation.measures) {
    object[name] = measure.value;
    if (measure.standard_error) errors[name] = *measure.standard_error;
  }
  if (!errors.empty()) object["standard_errors"] = std::move(errors);
  if (!observation.counters_before.empty()) {
    object["counters_before"] = numbers(observation.counters_before);
  }
  if (!observation.counters_after.empty()) object["counters"] = numbers(observation.counters_after);
  if (!observation.latency.empty()) object["latency_ns_buckets"] = observation.latency.buckets();
  if (observation.steady) {
    object["steady"] = {{"settled", observation.steady->settled},
                        {"warmup_share", observation.steady->warmup_share},
                        {"test", observation.steady->test}};
  }
  if (!observation.environment.empty()) object["environment"] = observation.environment;
  return object;
}

Result<Observation> observation_from_json(const json& object, const std::string& source,
                                          const std::string& json_path) {
  if (!object.is_object()) return bad_value(source, json_path, "must be an object");
  Observation result;
  result.outcome = Outcome::kMeasured;
  try {
    for (const auto& [key, value] : object.items()) {
      const std::string here = json_path + "/" + key;
      if (key == "configuration" || key == "granted") {
        auto configuration = configuration_from_json(value, source, here);
        if (!configuration) return pass_on(configuration);
        (key == "granted" ? result.granted : result.asked) = std::move(*configuration);
      } else if (key == "outcome") {
        const auto outcome = outcome_named(value.get<std::string>());
        if (!outcome) {
          return bad_value(source, here, "must be measured, refused, failed, timed_out or too_short");
        }
        result.outcome = *outcome;
      } else if (key == "reason") {
        result.reason = value.get<std::string>();
      } else if (key == "repeat") {
        result.repeat = value.get<int>();
      } else if (key == "seed") {
        result.seed = value.get<std::uint64_t>();
      } else if (key == "elapsed_seconds") {
        result.elapsed_seconds = value.get<double>();
      } else if (key == "counters" || key == "counters_before") {
        auto values = numbers_from_json(value, source, here);
        if (!values) return pass_on(values);
        (key == "counters" ? result.counters_after : result.counters_before) = std::move(*values);
      } else if (key == "standard_errors") {
        auto values = numbers_from_json(value, source, here);
        if (!values) return pass_on(values);
        for (const auto& [name, error] : *values) result.measures[name].standard_error = error;
      } else if (key == "latency_ns_buckets") {
        result.latency = LatencyHistogram::from_buckets(
            value.get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>());
      } else if (key == "steady") {
        result.steady = SteadyState{value.value("settled", false), value.value("warmup_share", 0.0),
                                    value.value("test", std::string())};
      } else if (key == "environment") {
        result.environment = value.get<std::map<std::string, std::string>>();
      } else if (value.is_number()) {
        result.measures[key].value = value.get<double>();
      } else if (key != "id") {
        return bad_value(source, here, "must be a number: every other field is a measure");
      }
    }
  } catch (const json::exception& error) {
    return bad_value(source, json_path, error.what());
  }
  for (const auto& [name, measure] : result.measures) {
    if (measure.standard_error && !object.contains(name)) {
      return bad_value(source, json_path + "/standard_errors/" + name,
                       "has no measure of its name");
    }
  }
  return result;
}

}  // namespace greynic::files
