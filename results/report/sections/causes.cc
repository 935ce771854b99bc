#include <fmt/core.h>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

std::string result_of(const json& evidence) {
  if (!evidence.value("decided", false)) return "undecided";
  return evidence.value("wall", false) ? "wall" : "clear";
}

std::string range_of(const json& ratio) {
  return fmt::format("[{}, {}]", percent(ratio.value("low", 0.0)),
                     percent(ratio.value("high", 0.0)));
}

/// "bisecting qp_count" -> "bisecting qp_count = 13": which level was tested.
std::string role_of(const json& evidence) {
  const std::string role = evidence.value("role", std::string());
  const std::string factor = role.substr(role.find(' ') + 1);
  const json configuration = evidence.value("configuration", json::object());
  if (!role.starts_with("bisecting ") || !configuration.contains(factor)) return role;
  return fmt::format("{} = {}", role, files::json_text(configuration.at(factor)));
}

void add_cause(const json& cause, int number_of_cause, const std::string& metric, Page& page,
               json& rows) {
  // Version 1 of the explanation called the effect severity.
  const json severity =
      cause.value(cause.contains("effect") ? "effect" : "severity", json::object());
  const bool tested = cause.value("by_experiment", false);
  const double confidence = cause.value("confidence", 0.0);
  page.raw(fmt::format(
      "<div class=\"cause c{}\"><h3><span>{} {}</span> {}</h3>\n",
      (number_of_cause - 1) % kCauseColours,
      tested ? (cause.value("emergent", false) ? "Emergent cause" : "Cause") : "Hypothesis",
      number_of_cause, escape_markup(cause.at("text").get<std::string>())));
  page.paragraph(
      fmt::format("Leaves {} {} of the expected {}, and explains {} walls. {} {}",
                  percent(severity.value("value", 0.0)), range_of(severity), metric,
                  cause.value("walls_explained", 0),
                  tested ? "Each of its settings was removed on its own, and the wall went."
                         : "Read from the run alone: no setting was removed to test it.",
                  confidence > 0.0 ? fmt::format("Confidence {:.2f} %.", confidence * 100)
                                   : "How sure that is cannot be said."));
  Table table({"tested", "result", ">of expected", ">interval", ">tests", ">p"});
  for (const json& evidence : cause.value("evidence", json::array())) {
    const json ratio = evidence.value("ratio", json::object());
    const std::string role = role_of(evidence);
    table.add({role, result_of(evidence), percent(ratio.value("value", 0.0)), range_of(ratio),
               std::to_string(evidence.value("tests", 0)),
               fmt::format("{:.2g}", evidence.value("p_value", 1.0))});
    rows.push_back({fmt::format("{} · {}", number_of_cause, role), ratio.value("value", 0.0),
                    ratio.value("low", 0.0), ratio.value("high", 0.0), result_of(evidence),
                    number_of_cause - 1});
  }
  if (!table.empty()) page.folded("Its tests as a table", table.text());
  page.raw("</div>\n");
}

}  // namespace

void add_causes(const Content& content, Page& page) {
  const json* explanation = content.document("explanation");
  if (explanation == nullptr || explanation->value("causes", json::array()).empty()) return;
  const std::string metric = explanation->value("metric", content.metric);
  page.section("causes", "Causes");
  page.paragraph(
      fmt::format("The smallest sets of settings that make the walls appear, from {} stored "
                  "observations and {} "
                  "ordered for this question.",
                  explanation->value("tests_read", 0), explanation->value("tests_ordered", 0)));
  int count = 0;
  json rows = json::array();
  for (const json& cause : explanation->at("causes")) add_cause(cause, ++count, metric, page, rows);
  if (!rows.empty()) {
    page.chart({{"kind", "evidence"},
                {"rows", std::move(rows)},
                {"axis", "share of the expected " + metric}},
               "The evidence: each test of a cause as a share of what was expected, with its "
               "interval.");
  }
  for (const json& note : explanation->value("notes", json::array())) {
    page.paragraph("Note: " + note.get<std::string>());
  }
}

}  // namespace greynic::report
