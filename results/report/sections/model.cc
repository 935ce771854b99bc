#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "greynic/core/units.h"
#include "greynic/statistics/mean.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

void add_parameters(const json& model, Page& page) {
  Table table({"parameter", ">value", "95 % interval", "unit"});
  const auto text_of = [](const json& value) {
    return value.is_number()   ? number(value.get<double>())
           : value.is_string() ? value.get<std::string>()
                               : value.dump();
  };
  const json parameters = model.value("parameters", json::array());
  for (const json& parameter : parameters.is_array() ? parameters : json::array()) {
    if (!parameter.is_object()) continue;
    const bool bounded = parameter.contains("low") && parameter.at("low").is_number() &&
                         parameter.contains("high") && parameter.at("high").is_number();
    table.add({parameter.value("name", std::string()),
               text_of(parameter.value("value", json(nullptr))),
               bounded ? interval(parameter.at("low"), parameter.at("high")) : "",
               parameter.value("unit", std::string())});
  }
  const json coefficients = model.value("coefficients", json::object());
  if (coefficients.is_object()) {
    for (const auto& [name, value] : coefficients.items()) {
      table.add({name, text_of(value), "", ""});
    }
  }
  if (!table.empty()) page.table(table);
}

/// Measured means against predictions; residuals as shares of the prediction.
void add_fit(const Content& content, const std::string& metric, Page& page) {
  json points = json::array();
  Table table(
      {"configuration", ">measured", ">predicted", ">95 % interval", ">residual", "inside"});
  std::size_t inside = 0;
  for (const results::Group& group : content.groups) {
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, metric));
    if (mean.count == 0) continue;
    const auto predicted = content.options.predictor(*group.configuration, metric);
    if (!predicted || predicted->value == 0.0) continue;
    const std::string name = content.short_name(*group.configuration);
    const bool within = predicted->low <= mean.value && mean.value <= predicted->high;
    inside += within ? 1 : 0;
    points.push_back({mean.value, predicted->value, predicted->low, predicted->high, name,
                      predicted->extrapolated});
    table.add({name, number(mean.value),
               number(predicted->value) + (predicted->extrapolated ? " (extrapolated)" : ""),
               interval(predicted->low, predicted->high),
               fmt::format("{:+.1f} %", (mean.value / predicted->value - 1) * 100),
               within ? "yes" : "no"});
  }
  if (table.empty()) return;
  page.raw(fmt::format("<h3>{}</h3>\n", escape_markup(title_of(metric))));
  page.paragraph(
      fmt::format("{} of {} configurations lie inside their 95 % interval.", inside, table.size()));
  page.begin_grid();
  page.chart({{"kind", "predicted"}, {"points", points}, {"axis", title_of(metric)}},
             "Predicted against measured; on the line both are equal. Whiskers: 95 % of new "
             "observations.",
             true);
  page.chart({{"kind", "residuals"}, {"points", std::move(points)}, {"axis", title_of(metric)}},
             "Residuals: measured minus predicted, as a share of the prediction.", true);
  page.end_grid();
  page.folded(fmt::format("{} points, predictions and residuals", table.size()), table.text());
}

/// The law along one numeric factor, everything else at the baseline, with the data that lie there.
void add_curve(const Content& content, const std::string& metric, const std::string& factor,
               Page& page, Table& table) {
  double least = 0.0;
  double most = 0.0;
  json data = json::array();
  bool first = true;
  for (const results::Group& group : content.groups) {
    const FactorValue* level = group.configuration->find(factor);
    if (level == nullptr || !std::holds_alternative<double>(*level)) return;
    const double x = std::get<double>(*level);
    least = first ? x : std::min(least, x);
    most = first ? x : std::max(most, x);
    first = false;
    Configuration others = *group.configuration;
    others.set(factor, content.baseline.number(factor));
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, metric));
    if (others == content.baseline && mean.count > 0) {
      data.push_back({x, mean.value, mean.value - mean.half_width, mean.value + mean.half_width});
    }
  }
  if (most <= least) return;
  // Factors that span decades are walked in equal ratios, the others in equal steps.
  constexpr int kSteps = 40;
  const bool ratios = least > 0.0 && most / least >= 50.0;
  json curve = json::array();
  for (int i = 0; i <= kSteps; ++i) {
    const double share = static_cast<double>(i) / kSteps;
    const double x =
        ratios ? least * std::pow(most / least, share) : least + share * (most - least);
    Configuration at = content.baseline;
    at.set(factor, std::round(x));
    const auto predicted = content.options.predictor(at, metric);
    if (!predicted) continue;
    curve.push_back({std::round(x), predicted->value, predicted->low, predicted->high});
    if (i % 4 == 0) {
      table.add({metric, factor, number(std::round(x)), number(predicted->value),
                 interval(predicted->low, predicted->high)});
    }
  }
  if (curve.size() < 2) return;
  page.chart({{"kind", "law"},
              {"curve", std::move(curve)},
              {"data", std::move(data)},
              {"log", ratios},
              {"axis", title_of(metric)},
              {"name", factor}},
             factor, true);
}

/// The range of a numeric factor in the data; empty for other factors and for one level only.
std::optional<std::pair<double, double>> range_of(const Content& content,
                                                  const std::string& factor) {
  double least = HUGE_VAL;
  double most = -HUGE_VAL;
  for (const results::Group& group : content.groups) {
    const FactorValue* level = group.configuration->find(factor);
    if (level == nullptr || !std::holds_alternative<double>(*level)) return std::nullopt;
    least = std::min(least, std::get<double>(*level));
    most = std::max(most, std::get<double>(*level));
  }
  if (!(most > least)) return std::nullopt;
  return std::pair(least, most);
}

/// The law over two factors, everything else at the baseline: masks first, they make the walls.
void add_surface(const Content& content, const std::string& metric, Page& page, Table& table) {
  std::vector<std::pair<std::string, std::pair<double, double>>> axes;
  for (const bool masks : {true, false}) {
    for (const std::string& factor : content.columns.varied) {
      const auto range = range_of(content, factor);
      if (range && factor.ends_with("_masks") == masks) axes.emplace_back(factor, *range);
    }
  }
  if (axes.size() < 2) return;
  constexpr int kCells = 16;
  const auto level_at = [](const std::pair<double, double>& range, int i) {
    const double share = static_cast<double>(i) / (kCells - 1);
    const bool ratios = range.first > 0.0 && range.second / range.first >= 50.0;
    return std::round(ratios ? range.first * std::pow(range.second / range.first, share)
                             : range.first + share * (range.second - range.first));
  };
  json x = json::array();
  json y = json::array();
  json cells = json::array();
  for (int i = 0; i < kCells; ++i) {
    x.push_back(level_at(axes[0].second, i));
    y.push_back(level_at(axes[1].second, i));
  }
  for (int i = 0; i < kCells; ++i) {
    for (int j = 0; j < kCells; ++j) {
      Configuration at = content.baseline;
      at.set(axes[0].first, x[static_cast<std::size_t>(i)].get<double>());
      at.set(axes[1].first, y[static_cast<std::size_t>(j)].get<double>());
      const auto predicted = content.options.predictor(at, metric);
      if (!predicted) continue;
      cells.push_back({i, j, predicted->value});
      if (i % 5 == 0 && j % 5 == 0) {
        table.add({metric, axes[0].first + ", " + axes[1].first,
                   number(x[static_cast<std::size_t>(i)].get<double>()) + ", " +
                       number(y[static_cast<std::size_t>(j)].get<double>()),
                   number(predicted->value), interval(predicted->low, predicted->high)});
      }
    }
  }
  if (cells.empty()) return;
  page.chart({{"kind", "surface"},
              {"x", std::move(x)},
              {"y", std::move(y)},
              {"cells", std::move(cells)},
              {"x_name", axes[0].first},
              {"y_name", axes[1].first},
              {"axis", title_of(metric)}},
             fmt::format("The law over {} and {}, the rest at the baseline.", axes[0].first,
                         axes[1].first),
             true);
}

}  // namespace

void add_model(const Content& content, Page& page) {
  const json* model = content.document("model");
  if (model == nullptr) return;
  page.section("model", "Model");
  page.paragraph(
      fmt::format("Law \"{}\", fitted to {} observations. docs/models/ has its equations.",
                  model->value("law", std::string("unknown")), model->value("observations", 0)));
  add_parameters(*model, page);
  const json findings = model->value("findings", json::array());
  if (!findings.empty()) {
    page.raw("<ul>\n");
    for (const json& finding : findings) {
      page.raw(fmt::format("<li>{}</li>\n", escape_markup(finding.get<std::string>())));
    }
    page.raw("</ul>\n");
  }
  if (!content.options.predictor) return;
  Table curves({"measure", "factor", ">at", ">predicted", ">95 % interval"});
  for (const std::string& metric : {content.metric, content.second_metric}) {
    if (metric.empty() || !content.options.predictor(content.baseline, metric)) continue;
    add_fit(content, metric, page);
    page.begin_grid();
    for (const std::string& factor : content.columns.varied) {
      add_curve(content, metric, factor, page, curves);
    }
    add_surface(content, metric, page, curves);
    page.end_grid();
  }
  if (!curves.empty()) {
    page.folded("The law along each factor, the rest at the baseline, as a table", curves.text());
  }
}

}  // namespace greynic::report
