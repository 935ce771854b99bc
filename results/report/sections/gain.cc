#include <fmt/core.h>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// A number alone, or one with its interval; empty for anything else.
struct Value {
  double middle = 0.0;
  double low = 0.0;
  double high = 0.0;
};

std::optional<Value> value_of(const json& value) {
  if (value.is_number())
    return Value{value.get<double>(), value.get<double>(), value.get<double>()};
  if (!value.is_object() || !value.contains("value") || !value.at("value").is_number()) {
    return std::nullopt;
  }
  const double middle = value.at("value").get<double>();
  return Value{middle, value.value("low", middle), value.value("high", middle)};
}

std::string text_of(const json& value) {
  if (const auto read = value_of(value)) {
    return value.is_object() ? number(read->middle) + " " + interval(read->low, read->high)
                             : number(read->middle);
  }
  return value.is_string() ? value.get<std::string>() : files::json_text(value);
}

}  // namespace

void add_gain(const Content& content, Page& page) {
  const json* gain = content.document("gain");
  if (gain == nullptr) return;
  page.section("gain", "Gain");
  const std::string metric = gain->value("metric", content.metric);
  json bars = json::array();
  for (const char* name : {"before", "predicted", "after"}) {
    if (!gain->contains(name)) continue;
    if (const auto value = value_of(gain->at(name))) {
      bars.push_back({name, value->middle, value->low, value->high});
    }
  }
  if (bars.size() > 1) {
    page.chart({{"kind", "gain"}, {"rows", std::move(bars)}, {"axis", title_of(metric)}},
               fmt::format("{} with the old layout, predicted for the new one, and measured with "
                           "it. Old and new were measured in turn.",
                           title_of(metric)));
  }
  Table table({"", "value"});
  for (const auto& [name, value] : gain->items()) {
    if (name != "version") table.add({name, text_of(value)});
  }
  page.table(table);
}

}  // namespace greynic::report
