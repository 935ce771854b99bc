#include "schema_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"

namespace greynic::files {

using nlohmann::json;

namespace {

bool is_index(const std::string& step, std::size_t& index) {
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  return error == std::errc() && end == step.data() + step.size();
}

const json* value_at(const json& document, const std::vector<std::string>& path) {
  const json* value = &document;
  for (const std::string& step : path) {
    std::size_t index = 0;
    if (value->is_object() && value->contains(step)) {
      value = &value->at(step);
    } else if (value->is_array() && is_index(step, index) && index < value->size()) {
      value = &value->at(index);
    } else {
      return nullptr;
    }
  }
  return value;
}

/// Follows "#/..." references; null where one leads nowhere.
const json* resolved(const json& schema, const json* part) {
  while (part != nullptr && part->is_object() && part->contains("$ref")) {
    const json::json_pointer place(part->at("$ref").get<std::string>().substr(1));
    part = schema.contains(place) ? &schema.at(place) : nullptr;
  }
  return part;
}

/// What the schema says of the value at `path`; null where it depends on alternatives.
const json* schema_at(const json& schema, const std::vector<std::string>& path) {
  const json* part = resolved(schema, &schema);
  for (const std::string& step : path) {
    const json* next = nullptr;
    if (part->contains("properties") && part->at("properties").contains(step)) {
      next = &part->at("properties").at(step);
    } else {
      for (const char* rest : {"additionalProperties", "items"}) {
        if (part->contains(rest) && part->at(rest).is_object()) next = &part->at(rest);
      }
    }
    part = resolved(schema, next);
    if (part == nullptr) return nullptr;
  }
  return part;
}

std::string kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return "text";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::array:
      return "a list";
    case json::value_t::object:
      return "an object";
    case json::value_t::null:
      return "null";
    default:
      return "a number";
  }
}

std::string kind_named(const std::string& type) {
  if (type == "string") return "text";
  if (type == "boolean") return "true or false";
  if (type == "array") return "a list";
  if (type == "integer") return "a whole number";
  return type == "null" ? "null" : type == "object" ? "an object" : "a number";
}

std::string kinds_named(const json& types) {
  std::vector<std::string> names;
  for (const json& type : types.is_array() ? types : json::array({types})) {
    names.push_back(kind_named(type.get<std::string>()));
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

/// Short values as they stand in the file; of the rest the kind.
std::string shown(const json& value) {
  const std::string text = json_text(value);
  return text.size() <= 40 ? text : kind_of(value);
}

/// One of several forms that a value may have.
std::string form_of(const json& form) {
  if (form.contains("const")) return form.at("const").dump();
  if (form.contains("enum")) {
    std::vector<std::string> levels;
    for (const json& level : form.at("enum")) levels.push_back(json_text(level));
    return fmt::format("{}", fmt::join(levels, ", "));
  }
  if (form.contains("pattern")) return "text like " + form.at("pattern").get<std::string>();
  if (form.contains("required")) return "an object with " + form.at("required").dump();
  return form.contains("type") ? kinds_named(form.at("type")) : "a form described there";
}

/// What stands in quotes at the end; `before` is what the validator says before it.
std::string quoted_end(const std::string& complaint, const std::string& before) {
  const std::size_t begin = complaint.find(before + " '") + before.size() + 2;
  const std::size_t end = complaint.rfind('\'');
  return begin < end ? complaint.substr(begin, end - begin) : std::string();
}

std::string unknown_key(const std::string& key, const json* part) {
  std::vector<std::string> known;
  if (part != nullptr && part->contains("properties")) {
    for (const auto& [name, about] : part->at("properties").items()) known.push_back(name);
  }
  return known.empty() ? fmt::format("\"{}\" is not known here", key)
                       : fmt::format("\"{}\" is not known here; what may stand is {}", key,
                                     fmt::join(known, ", "));
}

}  // namespace

std::string in_words(const std::string& complaint, const json& schema, const json& document,
                     const std::vector<std::string>& path) {
  const auto begins = [&](const char* with) { return complaint.rfind(with, 0) == 0; };
  const json* value = value_at(document, path);
  const json* part = schema_at(schema, path);
  const auto says = [&](const char* key) { return part != nullptr && part->contains(key); };
  if (begins("Object contains a property"))
    return unknown_key(quoted_end(complaint, "constraints:"), part);
  if (begins("Missing required property")) {
    return fmt::format("\"{}\" is missing", quoted_end(complaint, "property"));
  }
  if (begins("Value type not permitted") && value != nullptr) {
    return says("type")
               ? fmt::format("must be {}, not {}", kinds_named(part->at("type")), shown(*value))
               : fmt::format("cannot be {}", shown(*value));
  }
  if (value == nullptr || part == nullptr) return complaint;
  if (begins("Failed to match against any enum") && says("enum")) {
    return fmt::format("must be one of {}, not {}", form_of(*part), shown(*value));
  }
  if (begins("Failed to match") && (says("const") || says("pattern"))) {
    return fmt::format("must be {}, not {}", form_of(*part), shown(*value));
  }
  for (const char* alternatives : {"anyOf", "oneOf"}) {
    if (!begins("Failed to validate against") || !says(alternatives)) continue;
    std::vector<std::string> forms;
    for (const json& form : part->at(alternatives)) {
      if (const json* one = resolved(schema, &form)) forms.push_back(form_of(*one));
    }
    return fmt::format("{} is not allowed here; allowed: {}", shown(*value),
                       fmt::join(forms, "; "));
  }
  if (begins("Expected number")) {
    const std::size_t number = complaint.rfind(' ') + 1;
    return fmt::format("must be{} {:g}, not {}", complaint.substr(15, number - 16),
                       std::strtod(complaint.c_str() + number, nullptr), shown(*value));
  }
  return complaint;
}

}  // namespace greynic::files
