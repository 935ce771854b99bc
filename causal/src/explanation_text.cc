#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "around/around_text.h"
#include "greynic/causal/explain.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::causal {
namespace {

using nlohmann::json;

constexpr double kMuchLeft = 0.1;  // of the pairs of settings of which one may heal the other

std::string_view op_of(Relation relation) {
  switch (relation) {
    case Relation::kEquals:
      return "==";
    case Relation::kAtLeast:
      return ">=";
    case Relation::kAtMost:
      return "<=";
    case Relation::kIn:
      return "in";
    case Relation::kBetween:
      return "between";
    case Relation::kSumAtLeast:
      return "sum>=";
  }
  return "==";
}

json to_json(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

json value_of(const Condition& condition) {
  if (condition.relation == Relation::kBetween) {
    return {files::to_json(condition.level), condition.upper};
  }
  if (condition.relation != Relation::kIn) return files::to_json(condition.level);
  json list = json::array();
  for (const FactorValue& level : condition.among) list.push_back(files::to_json(level));
  return list;
}

json to_json(const Condition& condition) {
  json object = {{"factor", condition.factor},
                 {"op", op_of(condition.relation)},
                 {"value", value_of(condition)},
                 {"confirmed", condition.confirmed}};
  if (condition.clear_level) object["clear"] = *condition.clear_level;
  if (condition.clear_above) object["clear_above"] = *condition.clear_above;
  if (condition.finer) object["finer"] = {condition.finer->clear, condition.finer->wall};
  if (condition.finer_above) {
    object["finer_above"] = {condition.finer_above->clear, condition.finer_above->wall};
  }
  if (!condition.alike.empty()) object["alike"] = condition.alike;
  if (condition.relation == Relation::kSumAtLeast) {
    json factors = {condition.factor};
    for (const std::string& other : condition.with) factors.push_back(other);
    object["factors"] = std::move(factors);
  }
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
  return {{"terms", std::move(terms)},
          {"unless", std::move(exceptions)},
          {"text", cause.text()},
          {"by_experiment", cause.by_experiment},
          {"confidence", cause.confidence},
          {"emergent", cause.emergent},
          {"effect", to_json(cause.severity)},
          {"walls_explained", cause.walls_explained},
          {"evidence", std::move(evidence)}};
}

/// Only what differs from the baseline: a trail may hold hundreds of tests of hundreds of factors.
json to_json(const TrailTest& test, const Configuration& baseline) {
  json changed = json::object();
  for (const auto& [name, level] : test.configuration.levels()) {
    const FactorValue* usual = baseline.find(name);
    if (usual == nullptr || *usual != level) changed[name] = files::to_json(level);
  }
  return {
      {"round", test.round},           {"why", test.why},
      {"changed", std::move(changed)}, {"value", test.value ? json(*test.value) : json(nullptr)},
      {"outcome", test.outcome},       {"wall_before", test.before},
      {"wall_after", test.after}};
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

std::string_view name_of(Finding finding) {
  switch (finding) {
    case Finding::kWall:
      return "wall";
    case Finding::kFalseAlarm:
      return "false_alarm";
    case Finding::kUndecided:
      break;
  }
  return "undecided";
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
  json trail = json::array();
  for (const TrailTest& test : explanation.trail) {
    trail.push_back(to_json(test, explanation.baseline));
  }
  json document = {
      {"version", 2},
      {"verdict", name_of(explanation.finding)},
      {"complete", explanation.complete},
      {"complete_confidence", explanation.complete_confidence},
      {"hidden_left", explanation.hidden_left ? json(*explanation.hidden_left) : json()},
      {"tests", explanation.tests},
      {"rounds", explanation.rounds},
      {"baseline", files::to_json(explanation.baseline)},
      {"trail", std::move(trail)},
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
  if (explanation.path) document["critical_path"] = json_of(*explanation.path);
  if (explanation.sensitivity) document["sensitivity"] = json_of(*explanation.sensitivity);
  return files::json_text(document, 1) + "\n";
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
    text += fmt::format("\n{} {}: {}\n",
                        !cause.by_experiment ? "hypothesis"
                        : cause.emergent     ? "emergent cause"
                                             : "cause",
                        i + 1, cause.text());
    text += fmt::format(
        "  explains {} walls; confidence {:.2f} %; there the metric is {} of expected\n",
        cause.walls_explained, cause.confidence * 100, percent(cause.severity));
    for (const Condition& term : cause.all_of) {
      for (const auto& bracket : {term.finer, term.finer_above}) {
        if (!bracket) continue;
        text += fmt::format("  {}: clear at {}, a wall at {}\n", term.factor,
                            to_string(FactorValue(bracket->clear)),
                            to_string(FactorValue(bracket->wall)));
      }
    }
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
  if (explanation.complete && !explanation.causes.empty()) {
    text += fmt::format(
        "\ncomplete: every healed wall was clear, so the wall shows no further cause ({:.2f} %)\n",
        explanation.complete_confidence * 100);
    if (explanation.hidden_left) {
      text += fmt::format(
          "causes that the wall's own settings heal: {:.0f} % of the pairs of settings are "
          "excluded{}\n",
          100.0 * (1.0 - *explanation.hidden_left),
          *explanation.hidden_left > kMuchLeft ? "; --hidden asks for the rest in a few tests"
                                               : "");
    }
  }
  std::size_t unexplained = 0;
  for (const Wall& wall : explanation.walls) unexplained += wall.cause ? 0 : 1;
  if (unexplained > 0) text += fmt::format("\n{} walls stay unexplained\n", unexplained);
  if (explanation.path) text += text_of(*explanation.path);
  if (explanation.sensitivity) text += text_of(*explanation.sensitivity);
  for (const std::string& note : explanation.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace greynic::causal
