#include <fmt/core.h>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

std::string mask_name(const json& mask) {
  std::string name;
  for (const auto& [field, bits] : mask.items()) {
    name += (name.empty() ? "" : " ") + field +
            (bits.is_string() ? "/" + bits.get<std::string>() : std::string());
  }
  return name.empty() ? "any" : name;
}

/// Every matcher of a layout. Weights are shares of the traffic of the input table; where the rules
/// carry none, the column stays empty.
std::string matchers_of(const json& layout) {
  Table table({">table", ">place", "matcher", ">rules", ">share of traffic"});
  for (const json& one : layout.value("tables", json::array())) {
    std::size_t place = 0;
    for (const json& matcher : one.value("matchers", json::array())) {
      const json rules = matcher.value("rules", json::array());
      double weight = 0.0;
      for (const json& rule : rules) weight += rule.value("weight", 0.0);
      table.add({std::to_string(one.value("id", 0)), std::to_string(++place),
                 mask_name(matcher.value("mask", json::object())), std::to_string(rules.size()),
                 weight > 0.0 ? percent(weight) : ""});
    }
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

std::string predicted_text(const json& cost, const std::string& metric) {
  const json predicted = cost.value("predicted", json::object());
  if (!predicted.contains(metric)) return "";
  const json& of = predicted.at(metric);
  return fmt::format("{} {}{}", number(of.value("value", 0.0)),
                     interval(of.value("low", 0.0), of.value("high", 0.0)),
                     predicted.value("extrapolated", false) ? " (extrapolated)" : "");
}

/// (matchers tried, share of the packets that are decided by then)
json decided_by(const json& cost) {
  json points = json::array({json::array({0, 0.0})});
  double sum = 0.0;
  for (const json& step : cost.at("shares_by_tried")) {
    sum += step.at(1).get<double>();
    points.push_back({step.at(0), sum});
  }
  return points;
}

/// Layouts that models of a fleet have of their own.
void add_models(const json& optimization, Page& page) {
  if (!optimization.contains("models")) return;
  Table table({"models", ">matchers tried, before", ">after", ">to software, before", ">after",
               ">matchers", ">rules"});
  for (const json& one : optimization.at("models")) {
    std::string names;
    for (const json& name : one.at("names")) {
      names += (names.empty() ? "" : ", ") + name.get<std::string>();
    }
    const auto tried = [&](const char* side) {
      return fmt::format("{:.2f}", one.at(side).at("matchers_tried_mean").get<double>());
    };
    const auto slow = [&](const char* side) {
      return percent(one.at(side).at("software_share").get<double>());
    };
    table.add({names, tried("before"), tried("after"), slow("before"), slow("after"),
               files::json_text(one.at("matchers")), files::json_text(one.at("rules"))});
  }
  page.paragraph(
      "Each model of the fleet has a layout of its own. Numbers above are those of the "
      "first models.");
  page.table(table);
}

/// What the optimizer kept: the numbers that `greynic tune` prints.
void add_costs(const Content& content, const json& optimization, Page& page) {
  const json& before = optimization.at("before");
  const json& after = optimization.at("after");
  Table table({"", ">before", ">after"});
  const auto row = [&](const char* name, const char* key) {
    table.add({name, files::json_text(before.at(key)), files::json_text(after.at(key))});
  };
  const auto mean = [](const json& cost) {
    return fmt::format("{:.2f}", cost.at("matchers_tried_mean").get<double>());
  };
  page.paragraph(fmt::format(
      "A packet tries {} matchers on average before, and {} after. Traffic: {}; rules: {}.",
      mean(before), mean(after), optimization.value("traffic", std::string("not kept")),
      optimization.value("rules", std::string("not kept"))));
  row("tables", "tables");
  row("matchers, in all tables", "matchers");
  row("rules", "rules");
  table.add({"matchers that a packet tries, mean", mean(before), mean(after)});
  row("matchers that a packet tries, most", "matchers_tried_most");
  if (const std::string now = predicted_text(after, content.metric); !now.empty()) {
    table.add(
        {"predicted " + title_of(content.metric), predicted_text(before, content.metric), now});
  }
  page.table(table);
  add_models(optimization, page);
  const json proof = optimization.value("proof", json::object());
  page.paragraph(fmt::format(
      "{} {} pairs of rules were scanned, {} regions compared.{}",
      proof.value("verified", false)
          ? "Proven: both layouts do the same to every packet, and code that shares nothing with "
            "the search says so too."
          : "Not proven: no code apart from the search confirmed that both layouts do the same.",
      proof.value("pairs", std::size_t{0}), proof.value("regions", std::size_t{0}),
      optimization.contains("applied")
          ? fmt::format(" The device got it in the form that it searches fastest: {} matchers, {} "
                        "rules.",
                        optimization.at("applied").value("matchers", std::size_t{0}),
                        optimization.at("applied").value("rules", std::size_t{0}))
          : ""));
  page.chart({{"kind", "walk"},
              {"series",
               {{{"name", "before"}, {"points", decided_by(before)}},
                {{"name", "after"}, {"points", decided_by(after)}}}}},
             "How many of the packets are decided after how many matchers: the earlier the line "
             "rises, the shorter the walk.");
}

/// Matchers tried against the rules that a layout may have, with the point that was taken.
void add_tradeoff(const json& optimization, Page& page) {
  const json curve = optimization.value("curve", json::array());
  if (curve.size() < 2) return;
  json mean = json::array();
  json p99 = json::array();
  Table table({">growth allowed", ">rules", ">matchers tried, mean", ">99 %"});
  for (const json& point : curve) {
    const double tried = point.at("matchers_tried_mean").get<double>();
    mean.push_back({point.at("rules"), tried});
    p99.push_back({point.at("rules"), point.at("matchers_tried_p99")});
    table.add({number(point.at("growth").get<double>()), files::json_text(point.at("rules")),
               fmt::format("{:.2f}", tried), files::json_text(point.at("matchers_tried_p99"))});
  }
  page.chart(
      {{"kind", "tradeoff"},
       {"taken", optimization.at("after").at("rules")},
       {"series", {{{"name", "mean"}, {"points", mean}}, {{"name", "99 %"}, {"points", p99}}}}},
      "Matchers that a packet tries against the rules of the layout: what more entries in "
      "the device buy. The line marks the layout that was taken.");
  page.folded("Matchers tried against rules, as a table", table.text());
}

/// Masks of single chains against the entries that they are bought with, above their lower bound.
void add_mask_curve(const json& optimization, Page& page) {
  if (!optimization.contains("mask_curve")) return;
  const json& curve = optimization.at("mask_curve");
  const json& points = curve.at("points");
  if (points.size() < 2) return;
  json kept = json::array();
  json least = json::array();
  Table table({">growth allowed", ">entries", ">masks", ">at least"});
  for (const json& point : points) {
    kept.push_back({point.at("entries"), point.at("masks")});
    least.push_back({point.at("entries"), point.at("masks_at_least")});
    table.add({number(point.at("growth").get<double>()), files::json_text(point.at("entries")),
               files::json_text(point.at("masks")), files::json_text(point.at("masks_at_least"))});
  }
  page.chart(
      {{"kind", "tradeoff"},
       {"name", "masks"},
       {"taken", points.at(curve.at("taken").get<std::size_t>()).at("entries")},
       {"series",
        {{{"name", "masks"}, {"points", kept}}, {{"name", "lower bound"}, {"points", least}}}}},
      "Masks of a single chain against its entries, when rules are written out so that masks "
      "merge. No choice of masks gets below the lower bound. The line marks where entries "
      "times masks is least.");
  page.folded("Masks against entries, as a table", table.text());
}

}  // namespace

void add_layout(const Content& content, Page& page) {
  const auto layouts = layouts_of(content);
  const json* optimization = content.document("optimization");
  if (layouts.empty() && optimization == nullptr) return;
  page.section("layout", "Rule layout");
  if (optimization != nullptr) {
    add_costs(content, *optimization, page);
    add_tradeoff(*optimization, page);
    add_mask_curve(*optimization, page);
  } else {
    page.paragraph(
        "How many matchers a packet tries is not kept with this run; `greynic tune` keeps it.");
  }
  std::string tables;
  for (const auto& [name, layout] : layouts) {
    tables += fmt::format("<h3>{}</h3>\n", escape_markup(name)) + matchers_of(layout);
  }
  if (!tables.empty()) page.folded("The matchers in their order, as a table", tables);
}

}  // namespace greynic::report
