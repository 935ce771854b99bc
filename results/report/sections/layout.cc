#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// Matchers in the order in which a packet meets them, with the share of traffic each decides.
struct Walk {
  std::vector<std::string> names;
  std::vector<std::size_t> rules;
  std::vector<double> shares;
  bool weighted = false;  ///< shares are of traffic; else of rules
};

std::string mask_name(const json& mask) {
  std::string name;
  for (const auto& [field, bits] : mask.items()) {
    name += (name.empty() ? "" : " ") + field +
            (bits.is_string() ? "/" + bits.get<std::string>() : std::string());
  }
  return name.empty() ? "any" : name;
}

Walk walk_of(const json& layout) {
  Walk walk;
  std::vector<double> weights;
  double weight_sum = 0.0;
  std::size_t rule_sum = 0;
  for (const json& table : layout.value("tables", json::array())) {
    for (const json& matcher : table.value("matchers", json::array())) {
      const json rules = matcher.value("rules", json::array());
      double weight = 0.0;
      for (const json& rule : rules) weight += rule.value("weight", 0.0);
      walk.names.push_back(fmt::format("table {}: {}", table.value("id", 0),
                                       mask_name(matcher.value("mask", json::object()))));
      walk.rules.push_back(rules.size());
      weights.push_back(weight);
      weight_sum += weight;
      rule_sum += rules.size();
    }
  }
  walk.weighted = weight_sum > 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    walk.shares.push_back(walk.weighted
                              ? weights[i] / weight_sum
                              : static_cast<double>(walk.rules[i]) /
                                    static_cast<double>(std::max<std::size_t>(rule_sum, 1)));
  }
  return walk;
}

double mean_walk(const Walk& walk) {
  double sum = 0.0;
  for (std::size_t i = 0; i < walk.shares.size(); ++i) {
    sum += walk.shares[i] * static_cast<double>(i + 1);
  }
  return sum;
}

json decided(const Walk& walk) {
  json points = json::array({json::array({0, 0.0})});
  double sum = 0.0;
  for (std::size_t i = 0; i < walk.shares.size(); ++i) {
    sum += walk.shares[i];
    points.push_back({i + 1, sum});
  }
  return points;
}

std::string table_of(const Walk& walk) {
  Table table(
      {">walked", "matcher", ">rules", walk.weighted ? ">share of traffic" : ">share of rules"});
  for (std::size_t i = 0; i < walk.names.size(); ++i) {
    table.add({std::to_string(i + 1), walk.names[i], std::to_string(walk.rules[i]),
               percent(walk.shares[i])});
  }
  return table.text();
}

/// Layouts to show, by what they are called: a document with "tables", or one with before and
/// after.
std::vector<std::pair<std::string, json>> layouts_of(const Content& content) {
  std::vector<std::pair<std::string, json>> layouts;
  const auto add = [&](const std::string& name, const json& candidate) {
    if (candidate.is_object() && candidate.contains("tables"))
      layouts.emplace_back(name, candidate);
  };
  if (const json* before = content.document("layout_before")) add("before", *before);
  if (const json* layout = content.document("layout")) {
    add("after", *layout);
    for (const char* name : {"before", "after"}) add(name, layout->value(name, json()));
  }
  return layouts;
}

void add_gain(const Content& content, Page& page) {
  const json* gain = content.document("gain");
  if (gain == nullptr) return;
  page.section("gain", "Gain");
  Table table({"", ">value", ">95 % interval"});
  json bars = json::array();
  for (const auto& [name, value] : gain->items()) {
    if (name == "version") continue;
    const bool is_interval =
        value.is_object() && value.contains("value") && value.at("value").is_number();
    if (is_interval) {
      const double middle = value.at("value").get<double>();
      const double low = value.value("low", middle);
      const double high = value.value("high", middle);
      table.add({name, number(middle), interval(low, high)});
      bars.push_back({name, middle, low, high});
    } else if (value.is_number()) {
      table.add({name, number(value.get<double>()), ""});
    } else {
      table.add({name, value.is_string() ? value.get<std::string>() : value.dump(), ""});
    }
  }
  const auto plain = [&](const char* name) {
    if (gain->contains(name) && gain->at(name).is_number()) {
      const double value = gain->at(name).get<double>();
      bars.push_back({name, value, value, value});
    }
  };
  for (const char* name : {"before", "predicted", "after"}) plain(name);
  if (bars.size() > 1) {
    page.chart({{"kind", "gain"},
                {"rows", std::move(bars)},
                {"axis", title_of(gain->value("metric", content.metric))}},
               "Before the new layout, predicted for it, and measured with it.");
  }
  page.table(table);
}

}  // namespace

void add_layout(const Content& content, Page& page) {
  const auto layouts = layouts_of(content);
  if (!layouts.empty()) {
    page.section("layout", "Rule layout");
    json series = json::array();
    std::string tables;
    bool weighted = false;
    for (const auto& [name, layout] : layouts) {
      const Walk walk = walk_of(layout);
      weighted = weighted || walk.weighted;
      page.paragraph(fmt::format(
          "{}: {} matchers in {} tables, {} rules; a packet is checked against "
          "{:.2f} matchers on average.",
          name, walk.names.size(), layout.at("tables").size(),
          std::accumulate(walk.rules.begin(), walk.rules.end(), std::size_t{0}), mean_walk(walk)));
      series.push_back({{"name", name}, {"points", decided(walk)}});
      tables += fmt::format("<h3>{}</h3>\n", escape_markup(name)) + table_of(walk);
    }
    page.chart({{"kind", "walk"}, {"series", std::move(series)}},
               fmt::format("How much of the {} is decided after how many matchers: the earlier the "
                           "line rises, the shorter the walk.",
                           weighted ? "traffic" : "rule set"));
    page.folded("The matchers in their order, as a table", tables);
  }
  add_gain(content, page);
}

}  // namespace greynic::report
