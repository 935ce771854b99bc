#include <fmt/core.h>

#include <map>

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

/// Of a distribution, "flow_start_us_p99": which part of all lies below. Empty for other names.
std::optional<double> quantile_of(const std::string& name, const std::string& start) {
  if (!name.starts_with(start)) return std::nullopt;
  double place = 0.0;
  double unit = 1.0;
  for (const char digit : name.substr(start.size())) {
    if (digit < '0' || digit > '9') return std::nullopt;
    unit /= 10.0;
    place += unit * (digit - '0');
  }
  return place > 0.0 ? std::optional(place) : std::nullopt;
}

/// All that was measured, old beside new.
void add_measures(const json& gain, Page& page) {
  const json measures = gain.value("measures", json::object());
  Table table({"measure", ">before", ">after", ">change"});
  for (const auto& [name, value] : measures.items()) {
    const double before = value.value("before", 0.0);
    const double after = value.value("after", 0.0);
    table.add({title_of(name), number(before), number(after),
               before > 0.0 ? fmt::format("{:+.1f} %", 100.0 * (after / before - 1.0)) : ""});
  }
  if (table.size() > 0) page.table(table);
}

/// How long new flows waited, before and after.
void add_flow_starts(const json& gain, Page& page) {
  const std::string start = "flow_start_us_p";
  std::map<double, std::pair<double, double>> by_quantile;
  const json measures = gain.value("measures", json::object());
  for (const auto& [name, value] : measures.items()) {
    if (const auto quantile = quantile_of(name, start)) {
      by_quantile[*quantile] = {value.value("before", 0.0), value.value("after", 0.0)};
    }
  }
  if (by_quantile.size() < 2) return;
  json before = json::array();
  json after = json::array();
  std::vector<double> range;
  for (const auto& [quantile, us] : by_quantile) {
    before.push_back({quantile, us.first});
    after.push_back({quantile, us.second});
    range.insert(range.end(), {us.first, us.second});
  }
  page.chart({{"kind", "quantiles"},
              {"series",
               {{{"name", "before"}, {"settings", "the old layout"}, {"points", std::move(before)}},
                {{"name", "after"}, {"settings", "the new layout"}, {"points", std::move(after)}}}},
              {"axis", axis_of(start + "50", range)}},
             "How long new flows wait until the RNIC forwards them, by percentile, with the old "
             "layout and the new one.");
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
    if (name != "version" && name != "measures") table.add({name, text_of(value)});
  }
  page.table(table);
  add_measures(*gain, page);
  add_flow_starts(*gain, page);
}

}  // namespace greynic::report
