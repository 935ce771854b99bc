#include <fmt/core.h>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

void add_parameters(const json& model, Page& page) {
  Table table({"parameter", ">value", "95 % interval", "unit"});
  const auto text_of = [](const json& value) {
    return value.is_number()   ? number(value.get<double>())
           : value.is_string() ? value.get<std::string>()
                               : files::json_text(value);
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
             "Predicted against measured. On the line both are equal; whiskers hold 95 % of new "
             "observations.",
             true);
  page.chart({{"kind", "residuals"}, {"points", std::move(points)}, {"axis", title_of(metric)}},
             "Residuals: measured minus predicted, as a share of the prediction.", true);
  page.end_grid();
  page.folded(fmt::format("{} points, predictions and residuals", table.size()), table.text());
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
    if (metric.empty()) continue;
    add_fit(content, metric, page);
    add_law_pictures(content, metric, page, curves);
  }
  if (!curves.empty()) {
    page.folded("The law along each factor, the rest at the baseline, as a table", curves.text());
  }
}

}  // namespace greynic::report
