#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "greynic/causal/explain.h"
#include "greynic/files/core_json.h"

namespace greynic::causal {
namespace {

using nlohmann::json;

std::string_view sign(Relation relation) {
  switch (relation) {
    case Relation::kEquals:
      return "=";
    case Relation::kAtLeast:
      return ">=";
    case Relation::kAtMost:
      return "<=";
  }
  return "=";
}

json to_json(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

json to_json(const Condition& condition) {
  json object = {{"factor", condition.factor},
                 {"relation", sign(condition.relation)},
                 {"level", files::to_json(condition.level)},
                 {"confirmed", condition.confirmed}};
  if (condition.clear_level) object["clear_level"] = *condition.clear_level;
  return object;
}

json to_json(const Evidence& evidence) {
  return {
      {"role", evidence.role},           {"configuration", files::to_json(evidence.configuration)},
      {"wall", evidence.wall},           {"decided", evidence.decided},
      {"tests", evidence.tests},         {"p_value", evidence.p_value},
      {"ratio", to_json(evidence.ratio)}};
}

json to_json(const Cause& cause) {
  json terms = json::array();
  for (const Condition& condition : cause.all_of) terms.push_back(to_json(condition));
  json exceptions = json::array();
  for (const Condition& condition : cause.unless) exceptions.push_back(to_json(condition));
  json evidence = json::array();
  for (const Evidence& one : cause.evidence) evidence.push_back(to_json(one));
  return {{"all_of", std::move(terms)},
          {"unless", std::move(exceptions)},
          {"text", cause.text()},
          {"by_experiment", cause.by_experiment},
          {"confidence", cause.confidence},
          {"severity", to_json(cause.severity)},
          {"walls_explained", cause.walls_explained},
          {"evidence", std::move(evidence)}};
}

json to_json(const Wall& wall) {
  return {{"configuration", files::to_json(wall.configuration)},
          {"ratio", to_json(wall.ratio)},
          {"p_value", wall.p_value},
          {"tests", wall.tests},
          {"outcome", wall.outcome.empty() ? json(nullptr) : json(wall.outcome)},
          {"cause", wall.cause ? json(*wall.cause) : json(nullptr)}};
}

std::string percent(const Ratio& ratio) {
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", ratio.value * 100, ratio.low * 100,
                     ratio.high * 100);
}

}  // namespace

std::string Condition::text() const {
  std::string text = fmt::format("{} {} {}", factor, sign(relation), to_string(level));
  if (clear_level && relation != Relation::kEquals) {
    text += fmt::format(" (clear at {})", to_string(FactorValue(*clear_level)));
  }
  return text;
}

std::string Cause::text() const {
  std::string text;
  for (const Condition& condition : all_of) {
    if (!text.empty()) text += " and ";
    text += condition.text();
  }
  for (const Condition& exception : unless) text += ", unless " + exception.text();
  return text;
}

std::string to_json_text(const Explanation& explanation) {
  json walls = json::array();
  for (const Wall& wall : explanation.walls) walls.push_back(to_json(wall));
  json causes = json::array();
  for (const Cause& cause : explanation.causes) causes.push_back(to_json(cause));
  json undecided = json::array();
  for (const Configuration& configuration : explanation.undecided_configurations) {
    undecided.push_back(files::to_json(configuration));
  }
  const json document = {{"version", 1},
                         {"campaign", explanation.campaign},
                         {"metric", explanation.metric},
                         {"bound", explanation.bound},
                         {"expected", explanation.expected},
                         {"confidence", explanation.confidence},
                         {"configurations", explanation.configurations},
                         {"refused", explanation.refused},
                         {"undecided", explanation.undecided},
                         {"undecided_configurations", std::move(undecided)},
                         {"tests_read", explanation.tests_read},
                         {"tests_ordered", explanation.tests_ordered},
                         {"walls", std::move(walls)},
                         {"causes", std::move(causes)},
                         {"notes", explanation.notes}};
  return document.dump(1) + "\n";
}

std::string to_text(const Explanation& explanation) {
  std::string text = fmt::format(
      "{}: {} of {} configurations are walls ({}; expected {:.4g}; {:.3g} % confidence)\n",
      explanation.campaign, explanation.walls.size(), explanation.configurations, explanation.bound,
      explanation.expected, explanation.confidence * 100);
  text += fmt::format("tests: {} read, {} ordered; {} configurations refused, {} undecided\n",
                      explanation.tests_read, explanation.tests_ordered, explanation.refused,
                      explanation.undecided);
  for (std::size_t i = 0; i < explanation.causes.size(); ++i) {
    const Cause& cause = explanation.causes[i];
    text += fmt::format("\n{} {}: {}\n", cause.by_experiment ? "cause" : "hypothesis", i + 1,
                        cause.text());
    text += fmt::format(
        "  explains {} walls; confidence {:.2f} %; there the metric is {} of expected\n",
        cause.walls_explained, cause.confidence * 100, percent(cause.severity));
    for (const Evidence& evidence : cause.evidence) {
      text += fmt::format("  {:<28} {:<5} {} ({} tests, p = {:.2g})\n", evidence.role,
                          !evidence.decided ? "?"
                          : evidence.wall   ? "wall"
                                            : "clear",
                          percent(evidence.ratio), evidence.tests, evidence.p_value);
    }
    if (!cause.by_experiment) {
      text += "  not tested by removal: name a device with --target to confirm it\n";
    }
  }
  std::size_t unexplained = 0;
  for (const Wall& wall : explanation.walls) unexplained += wall.cause ? 0 : 1;
  if (unexplained > 0) text += fmt::format("\n{} walls stay unexplained\n", unexplained);
  for (const std::string& note : explanation.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace greynic::causal
